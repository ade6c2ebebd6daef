// What is asked: the question large, what it is about in full, with the signs that matter in a command or a change set off.
// Every character of the tool stays where it was.

import { el } from "/dom.js";
import { folder } from "/words.js";

const SIGNS = /(\|\|?|&&?|;|>>?|<<?|\$\(|\$\{|`|\bsudo\b|\brm\b|--force\b|-rf?\b|--hard\b)/;
const NAMES = { command: "command", edit: "change", fetch: "address", plan: "plan", question: "question", tool: "tool", trust: "trust" };

// The line that asks: the last one with a question mark, else the last one; lines that only repeat the choices do not count.
const repeats = (line, choices) => choices.some((choice) => choice.label && line.replace(/^[\s│┃|❯>›*•\-]*(\(?[\w]{1,2}[.)\]:]\s*)?/u, "").trim() === choice.label);

function asking(lines, choices) {
  const own = lines.map((line, at) => [line, at]).filter(([line]) => line.trim() && !repeats(line, choices));
  const asked = own.filter(([line]) => /[?？]/.test(line));
  return (asked.length ? asked : own).at(-1)?.[1] ?? lines.length - 1;
}

export function quotation(prompt) {
  const lines = ((!prompt.constraints.idle && prompt.asked) || prompt.excerpt).split("\n");
  const at = asking(lines, prompt.choices);
  const parts = lines.flatMap((line, row) => [row ? "\n" : null, row === at ? el("strong", {}, line) : repeats(line, prompt.choices) ? el("small", {}, line) : line]);
  return el("blockquote", { cls: prompt.constraints.idle ? "ask idle" : "ask" }, ...parts,
    prompt.warning ? el("small", { cls: "tag warn" }, prompt.warning) : null);
}

export function oneLine(prompt) {
  const lines = prompt.excerpt.split("\n");
  return lines[asking(lines, prompt.choices)] || prompt.excerpt;
}

function signs(text) {
  return text.split(SIGNS).map((part, at) => (at % 2 ? el("b", {}, part) : part));
}

function change(text) {
  return text.split("\n").flatMap((line, at) => [at ? "\n" : null,
    /^\s*\d*\s*\+/.test(line) ? el("ins", {}, line) : /^\s*\d*\s*-/.test(line) ? el("del", {}, line) : line]);
}

export function subjectOf(prompt) {
  const subject = prompt.subject;
  if (!subject || !subject.text || prompt.constraints.secret) return null;
  if (subject.kind === "question" && prompt.excerpt.includes(subject.text)) return null;
  const colours = subject.kind === "edit" ? change : subject.kind === "command" ? signs : (text) => [text];
  return el("figure", { cls: `subject ${subject.kind}` },
    el("figcaption", {}, NAMES[subject.kind] || subject.kind,
      subject.target ? el("span", { cls: "target" }, subject.target) : null,
      subject.folder ? el("span", { title: subject.folder }, `in ${folder(subject.folder)}`) : null,
      subject.complete || prompt.whole ? null : el("span", { cls: "tag warn" }, "not whole: look at the screen")),
    el("pre", { tabindex: "0" }, ...colours(subject.text)));
}
