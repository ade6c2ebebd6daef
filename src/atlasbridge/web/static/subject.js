// What is asked: the question large and first, what it is about in full, and all that the tool wrote, word for word.

import { address, change, command } from "/colours.js";
import { el, whole } from "/dom.js";
import { folder } from "/words.js";

const NAMES = { command: "wants to run", edit: "wants to change", fetch: "wants to fetch", plan: "has a plan", question: "question", tool: "wants to call", trust: "trust" };
const COLOURS = { command, edit: change, fetch: address };
const UNCLEAR = "It waits, but what it asks is not clear.";

const bare = (line) => line.replace(/^[\s│┃|❯>›*•\-]*(\(?[\w]{1,2}[.)\]:]\s*)?/u, "").trim();
const repeats = (line, choices) => choices.some((choice) => choice.label && bare(line) === choice.label);
const labelled = (line) => /^\s*[\p{L}]+:\s/u.test(line);

// The line that asks: the last one with a question mark that is no choice and no part of what it is about, else the last one.
function asking(prompt, lines) {
  const about = new Set((prompt.subject?.text || "").split("\n").map((line) => line.trim()));
  const own = lines.map((line, at) => [line, at]).filter(([line]) => line.trim() && !repeats(line, prompt.choices));
  const asked = own.filter(([line]) => /[?？]/.test(line) && (prompt.subject?.kind === "question" || !about.has(line.trim())));
  const found = asked.filter(([line]) => !labelled(line)).at(-1) || asked.at(-1) || own.at(-1);
  return found ? found[1] : lines.length - 1;
}

const wordsOf = (prompt) => prompt.question || prompt.excerpt;
const unclear = (prompt) => prompt.type === "unknown" && !prompt.constraints.idle; // an editor at rest asks nothing

// "": nothing is asked in words that could be set large.
export function questionLine(prompt) {
  if (prompt.constraints.idle || unclear(prompt)) return "";
  const lines = wordsOf(prompt).split("\n");
  return lines[asking(prompt, lines)].replace(/^[\s│┃|]+/u, "").trim();
}

// All that the tool wrote, as it wrote it, with the asking line marked.
function quotation(prompt) {
  const lines = wordsOf(prompt).split("\n");
  const at = prompt.constraints.idle || unclear(prompt) ? -1 : asking(prompt, lines);
  return el("div", {}, whole(el("blockquote", { cls: "ask" }, ...lines.flatMap((line, row) => [row ? "\n" : null, row === at ? el("strong", {}, line) : line]))));
}

// Whether the question's words are no more than its large line, the subject and the choices, which are all shown anyway.
function adds(prompt) {
  const shown = [prompt.subject?.text || "", ...prompt.choices.map((choice) => `${choice.label} ${choice.detail || ""}`)].join(" ").replace(/\s+/g, "");
  const large = questionLine(prompt);
  return wordsOf(prompt).split("\n").some((line) => line.trim() && bare(line) !== bare(large) && !shown.includes(bare(line).replace(/\s+/g, "")));
}

export function asked(prompt) {
  const large = questionLine(prompt);
  const told = prompt.subject?.complete && prompt.subject.source !== "screen" && subjectOf(prompt);
  const words = quotation(prompt);
  const warning = prompt.warning ? el("p", { cls: "hint warn" }, prompt.warning) : null;
  const said = prompt.says ? el("p", { cls: "hint" }, "The tool says of itself: ", el("q", {}, prompt.says)) : null;
  if (unclear(prompt)) return [el("p", { cls: "question soft" }, UNCLEAR), warning, el("details", {}, el("summary", {}, "Its words"), words)];
  if (!large) return [words, warning, said];
  if (wordsOf(prompt).trim() === large && !prompt.subject) return [...whole(el("blockquote", { cls: "ask question" }, el("strong", {}, wordsOf(prompt)))), warning, said];
  if (!told) return [el("p", { cls: "question" }, large), subjectOf(prompt), adds(prompt) ? words : el("details", {}, el("summary", {}, "All that it wrote"), words), warning, said];
  return [el("p", { cls: "question" }, large), subjectOf(prompt), el("details", {}, el("summary", {}, "All that it wrote"), words, said), warning];
}

// For a list: what is asked, in one line; what it is about says more than "Do you want to proceed?".
export function oneLine(prompt) {
  if (prompt.constraints.secret) return { kind: "secret", text: questionLine(prompt) || "asks for a secret" };
  if (prompt.constraints.idle) return { kind: "idle", text: lastWords(prompt) };
  if (unclear(prompt)) return { kind: "unclear", text: "waits, not clear for what" };
  const subject = prompt.subject;
  if (subject?.text && subject.kind === "command") return { kind: "command", text: subject.text.trim() };
  if (subject?.target && subject.kind === "edit") return { kind: "edit", text: subject.target.split("/").at(-1), more: subject.text.split("\n").find((line) => /^\s*\d*\s*\+/.test(line)) || "" };
  if (subject?.text && ["fetch", "tool"].includes(subject.kind)) return { kind: subject.kind, text: subject.target || subject.text.split("\n")[0] };
  return { kind: "question", text: questionLine(prompt) };
}

// The same for where no sign stands before it.
export function sentence(prompt) {
  const { kind, text } = oneLine(prompt);
  const verb = { command: "wants to run: ", edit: "wants to change ", fetch: "wants to fetch ", tool: "wants to call " }[kind] || "";
  return `${verb}${text}`;
}

function lastWords(prompt) {
  const lines = wordsOf(prompt).split("\n").filter((line) => line.trim());
  const said = lines.filter((line) => /^\s*[●•⏺✦]/u.test(line)).at(-1) || lines.filter((line) => !/^\s*[✻✶✳✢·❯>›]|\bfor \d+s\b/u.test(line)).at(-1);
  return (said || lines.at(-1) || "").replace(/^\s*[●•⏺✦]\s*/u, "");
}

const within = (target, place) => (place && target.startsWith(`${place}/`) ? target.slice(place.length + 1) : target);

export function subjectOf(prompt) {
  const subject = prompt.subject;
  if (!subject || !subject.text || prompt.constraints.secret) return null;
  if (subject.kind === "question" && subject.text.split("\n").every((line) => line.startsWith("- ") || wordsOf(prompt).includes(line))) return null;
  return el("figure", { cls: `subject ${subject.kind}` },
    el("figcaption", {}, el("span", {}, NAMES[subject.kind] || subject.kind),
      subject.target ? el("span", { cls: "target", title: subject.target }, within(subject.target, subject.folder)) : null,
      subject.folder ? el("span", { title: subject.folder }, `in ${folder(subject.folder)}`) : null,
      subject.complete || prompt.whole ? null : el("span", { cls: "tag warn" }, "not whole: look at the screen")),
    whole(el("pre", { tabindex: "0", "aria-label": "In full" }, ...(COLOURS[subject.kind] || ((text) => [text]))(subject.text))));
}
