// What is asked: the command or change first and largest, what it does in one line, then the question's own words.

import { address, change, command } from "/colours.js";
import { el, unbroken, whole } from "/dom.js";
import { t } from "/language.js";
import { folder } from "/words.js";

const NAMES = () => ({ command: t("Command"), edit: t("Change"), fetch: t("Web page"), plan: t("Plan"), question: t("Question"), tool: t("Tool call"), trust: t("Trust") });
const COLOURS = { command, edit: change, fetch: address };
const [ROW, HEAD, TAIL, FOLD_OVER, SHOWN_HARSH] = [100, 6, 4, 13, 4]; // letters, rows

const bare = (line) => line.replace(/^[\s│┃|❯>›*•\-]*(\(?[\w]{1,2}[.)\]:]\s*)?/u, "").trim();
const repeats = (line, choices) => choices.some((choice) => choice.label && bare(line) === choice.label);
const labelled = (line) => /^\s*[\p{L}]+:\s/u.test(line);
const onlySigns = (line) => !/[\p{L}\p{N}]/u.test(line);

// The line that asks: the last one with a question mark that is no choice and no part of what it is about, else the last one
// with words in it (bash's `select` ends with "#?").
function asking(prompt, lines) {
  const about = new Set((prompt.subject?.text || "").split("\n").map((line) => line.trim()));
  const own = lines.map((line, at) => [line, at]).filter(([line]) => line.trim() && !repeats(line, prompt.choices));
  const worded = own.filter(([line]) => !onlySigns(line));
  const asked = worded.filter(([line]) => /[?？]/.test(line) && (prompt.subject?.kind === "question" || !about.has(line.trim())));
  const found = asked.filter(([line]) => !labelled(line)).at(-1) || asked.at(-1) || worded.at(-1) || own.at(-1);
  return found ? found[1] : lines.length - 1;
}

const wordsOf = (prompt) => prompt.question || prompt.excerpt;
const unclear = (prompt) => prompt.type === "unknown" && !prompt.constraints.idle; // an editor at rest asks nothing

// "": nothing is asked in words that could be set large.
export function questionLine(prompt) {
  if (prompt.constraints.idle || unclear(prompt)) return "";
  const lines = wordsOf(prompt).split("\n");
  const line = lines[asking(prompt, lines)].replace(/^[\s│┃|]+/u, "").trim();
  return onlySigns(line) && prompt.choices.length ? t("Which one?") : line;
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
  const subject = subjectOf(prompt);
  const words = quotation(prompt);
  const said = prompt.says ? el("p", { cls: "hint" }, t("The tool says of itself: "), el("q", {}, prompt.says)) : null;
  const notes = [warningOf(prompt), said];
  if (unclear(prompt)) return [el("p", { cls: "question soft" }, t("It is waiting, but what it asks is not clear.")), ...notes, el("details", {}, el("summary", {}, t("Its words")), words)];
  if (!large) return [words, ...notes];
  if (!subject && wordsOf(prompt).trim() === large) return [...whole(el("blockquote", { cls: "ask question" }, el("strong", {}, wordsOf(prompt)))), ...notes];
  const rest = subject && (prompt.subject.source !== "screen" || !adds(prompt)) ? el("details", {}, el("summary", {}, t("All that it wrote")), words) : words;
  const question = el("p", { cls: subject ? "question small" : "question" }, ...unbroken(large));
  return subject ? [subject, warningOf(prompt), question, rest, said] : [question, rest, ...notes];
}

// What a person must know before they approve.  `missing`: lines that are not here; 0 where their number is not known.
export function warningOf(prompt) {
  const [missing, hidden] = [Number(prompt.constraints.missing_lines) || 0, Number(prompt.constraints.hidden_rows) || 0];
  if (prompt.constraints.disagrees) return el("p", { cls: "word bad" }, t("What the tool announced and what its screen shows are not the same. You can only refuse this here."));
  if (prompt.whole === false) return el("p", { cls: "word warn" }, missing ? t("Not whole: 1 line is missing.|Not whole: {count} lines are missing.", { count: missing }) : hidden ? t("Not whole: the tool hides 1 row of it, and more can be missing.|Not whole: the tool hides {count} rows of it, and more can be missing.", { count: hidden }) : t("Not whole: how much is missing cannot be told. Look at the session before you approve."));
  return prompt.warning ? el("p", { cls: "hint warn" }, prompt.warning) : null;
}

const EFFECTS = {
  runs_downloaded: () => t("runs downloaded code"), runs_hidden: () => t("runs code that cannot be read here"), deletes: () => t("deletes files"),
  deletes_with: (target) => t("deletes with {target}", { target }), formats: (target) => (target ? t("overwrites the disk {target}", { target }) : t("overwrites a disk")), discards: () => t("discards changes"),
  force_pushes: (target) => (target ? t("force-pushes to {target}", { target }) : t("force-pushes")), pushes: (target) => (target ? t("pushes to {target}", { target }) : t("pushes")),
  publishes: (target) => t("publishes with {target}", { target }), sends: (target) => (target ? t("sends data to {target}", { target }) : t("sends data")),
  runs_on: (target) => t("runs commands on {target}", { target }), as_root: () => t("runs as root"), turns_off: () => t("restarts or turns off the computer"),
  deploys: (target) => t("changes a deployment with {target}", { target }), overwrites: (target) => (target ? t("overwrites {target}", { target }) : t("overwrites files")),
  stops: () => t("stops processes"), permissions: () => t("changes permissions"), schedules: () => t("schedules a job"), installs: () => t("installs packages"),
  downloads: (target) => (target ? t("downloads from {target}", { target }) : t("downloads")),
};

// One plain line of what it does: from the parsed command, or counted in a change.
export function effectWords(prompt) {
  const told = (prompt.constraints.effects || []).filter(({ kind }) => Object.hasOwn(EFFECTS, kind));
  if (told.length) return told.map(({ kind, target }) => EFFECTS[kind](String(target || "")));
  if (prompt.subject?.kind !== "edit" || !prompt.subject.text) return [];
  const lines = prompt.subject.text.split("\n").map((line) => /^\s*\d*\s*([+-])/.exec(line)?.[1]);
  const [added, removed] = ["+", "-"].map((sign) => lines.filter((found) => found === sign).length);
  return added + removed ? [t("+{added} −{removed} lines", { added, removed })] : [];
}

export function effectsOf(prompt) {
  const words = effectWords(prompt);
  return words.length ? el("p", { cls: `effects ${prompt.subject?.kind === "edit" ? "counts" : ""}` }, ...unbroken(words.join(" · "))) : null;
}

// For a list: what is asked, in one line; what it is about says more than "Do you want to proceed?".
export function oneLine(prompt) {
  if (prompt.constraints.secret) return { kind: "secret", text: questionLine(prompt) || t("asks for a secret") };
  if (prompt.constraints.idle) return { kind: "idle", text: lastWords(prompt) };
  if (unclear(prompt)) return { kind: "unclear", text: t("is waiting; it is not clear for what") };
  const subject = prompt.subject;
  if (subject?.text && subject.kind === "command") return { kind: "command", text: subject.text.trim() };
  if (subject?.target && subject.kind === "edit") return { kind: "edit", text: subject.target.split("/").at(-1), more: subject.text.split("\n").find((line) => /^\s*\d*\s*\+/.test(line)) || "" };
  if (subject?.text && ["fetch", "tool"].includes(subject.kind)) return { kind: subject.kind, text: subject.target || subject.text.split("\n")[0] };
  return { kind: "question", text: questionLine(prompt) };
}

// The same for where no sign stands before it.
export function sentence(prompt) {
  const { kind, text } = oneLine(prompt);
  const verb = { command: () => t("wants to run: {text}", { text }), edit: () => t("wants to change {text}", { text }), fetch: () => t("wants to fetch {text}", { text }), tool: () => t("wants to call {text}", { text }) }[kind];
  return verb ? verb() : text;
}

function lastWords(prompt) {
  const lines = wordsOf(prompt).split("\n").filter((line) => line.trim());
  const said = lines.filter((line) => /^\s*[●•⏺✦]/u.test(line)).at(-1) || lines.filter((line) => !/^\s*[✻✶✳✢·❯>›]|\bfor \d+s\b/u.test(line)).at(-1);
  return (said || lines.at(-1) || "").replace(/^\s*[●•⏺✦]\s*/u, "");
}

const within = (target, place) => (place && target.startsWith(`${place}/`) ? target.slice(place.length + 1) : target);

// Which rows of a long text are in sight: its beginning, its end, and the rows that are dangerous, as far as they are few.
// A list of [from, to, shown] that covers all rows.
/** @param {(row: any) => boolean} harsh */
export function fold(rows, harsh = () => false) {
  if (rows.length <= FOLD_OVER) return rows.length ? [[0, rows.length, true]] : [];
  let kept = 0;
  const shows = rows.map((row, at) => at < HEAD || at >= rows.length - TAIL || (harsh(row) && (kept += 1) <= SHOWN_HARSH));
  const out = [];
  shows.forEach((shown, at) => {
    if (out.at(-1)?.[2] === shown) out.at(-1)[1] = at + 1; else out.push([at, at + 1, shown]);
  });
  return out.map(([from, to, shown]) => [from, to, shown || to - from < 2]); // a button for one row hides nothing
}

// A text's pieces as rows: each ends with a line, or where a line is longer than a few rows of a phone.
function rowsOf(pieces) {
  const rows = [];
  let [row, size] = [el("span", { cls: "fold-row" }), 0];
  const end = () => { rows.push(row); [row, size] = [el("span", { cls: "fold-row" }), 0]; };
  const put = (text, like) => {
    if (!text) return;
    size += text.length;
    row.append(like ? Object.assign(like.cloneNode(false), { textContent: text }) : text);
  };
  for (const piece of pieces.filter((one) => one !== null)) {
    const like = typeof piece === "string" ? null : piece;
    if (like?.children.length) { row.append(like); size += like.textContent.length; continue; } // a changed line with its marks
    for (const line of (like ? like.textContent : piece).split(/(?<=\n)/)) {
      for (let rest = line; rest;) {
        const part = rest.slice(0, Math.max(1, ROW * 3 - size));
        rest = rest.slice(part.length);
        put(part, like);
        if (part.endsWith("\n") || size >= ROW * 3) end();
      }
    }
  }
  if (row.textContent) end();
  return rows;
}

// The text with its middle folded; nothing is left out of the document, and a tap shows it all.
function folded(text, pieces) {
  const rows = rowsOf(pieces);
  const parts = fold(rows, (row) => row.querySelector(".k-harsh") !== null);
  const out = parts.flatMap(([from, to, shown]) => {
    const own = rows.slice(from, to);
    if (shown) return own;
    const hidden = el("span", { cls: "folded", hidden: true }, ...own);
    const words = t("1 more line|{count} more lines", { count: to - from });
    const more = el("button", { type: "button", cls: "fold", "data-words": `⋯ ${words}`, "aria-label": `${words}: ${t("show all")}`, on: { click: () => {
      for (const node of text.querySelectorAll(".folded")) node.hidden = false;
      for (const node of text.querySelectorAll(".fold")) node.remove();
    } } });
    return [more, hidden];
  });
  text.append(...out);
  return text;
}

export function subjectOf(prompt) {
  const subject = prompt.subject;
  if (!subject || !subject.text || prompt.constraints.secret) return null;
  if (subject.kind === "question" && subject.text.split("\n").every((line) => line.startsWith("- ") || wordsOf(prompt).includes(line))) return null;
  const pieces = (COLOURS[subject.kind] || ((text) => [text]))(subject.text);
  return el("figure", { cls: `subject ${subject.kind}` },
    folded(el("pre", { tabindex: "0", "aria-label": t("In full") }), pieces),
    el("figcaption", {}, el("span", {}, NAMES()[subject.kind] || subject.kind),
      subject.target ? el("span", { cls: "target", title: subject.target }, within(subject.target, subject.folder)) : null,
      subject.folder ? el("span", { title: subject.folder }, t("in {folder}", { folder: folder(subject.folder) })) : null));
}
