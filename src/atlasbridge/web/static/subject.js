// What is asked: the command or change first and largest, what it does in one line, then the question's own words.

import { el, unbroken, whole } from "/dom.js";
import { folder, t } from "/words.js";

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

const wordsOf = (prompt) => prompt.last_words || prompt.question || prompt.excerpt;
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
  const said = prompt.says ? el("p", { cls: "hint" }, t("Description from the tool: "), el("q", {}, prompt.says)) : null;
  const notes = [warningOf(prompt), said];
  if (unclear(prompt)) return [el("p", { cls: "question soft" }, t("It seems to wait for input, but AtlasBridge does not recognise the question.")), ...notes, el("details", {}, el("summary", {}, t("Output")), words)];
  if (!large) return [words, ...notes];
  if (!subject && wordsOf(prompt).trim() === large) return [...whole(el("blockquote", { cls: "ask question" }, el("strong", {}, wordsOf(prompt)))), ...notes];
  const rest = subject && (prompt.subject.source !== "screen" || !adds(prompt)) ? el("details", {}, el("summary", {}, t("Full text from the tool")), words) : words;
  const question = el("p", { cls: subject ? "question small" : "question" }, ...unbroken(large));
  return subject ? [subject, warningOf(prompt), question, rest, said] : [question, rest, ...notes];
}

// What a person must know before they approve.  `missing`: lines that are not here; 0 where their number is not known.
export function warningOf(prompt) {
  if (prompt.constraints.idle) return null; // there is nothing to approve
  const [missing, hidden] = [Number(prompt.constraints.missing_lines) || 0, Number(prompt.constraints.hidden_rows) || 0];
  if (prompt.constraints.disagrees) return el("p", { cls: "word bad" }, t("What the tool announced does not match its screen. You can only refuse this here."));
  if (prompt.whole === false) return el("p", { cls: "word warn" }, missing ? t("Incomplete: 1 line is missing.|Incomplete: {count} lines are missing.", { count: missing }) : hidden ? t("Incomplete: the tool hides 1 row, and more can be missing.|Incomplete: the tool hides {count} rows, and more can be missing.", { count: hidden }) : t("Incomplete: AtlasBridge cannot tell how many lines are missing. Check the session before you approve; a taller window, or detaching the session, can show more."));
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
  const lines = prompt.subject.text.replace(/\n[+-]$/, "").split("\n").map((line) => /^\s*\d*\s*([+-])/.exec(line)?.[1]);
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
  if (unclear(prompt)) return { kind: "unclear", text: t("seems to wait for input") };
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

function subjectOf(prompt) {
  const subject = prompt.subject;
  if (!subject || !subject.text || prompt.constraints.secret) return null;
  if (subject.kind === "question" && subject.text.split("\n").every((line) => line.startsWith("- ") || wordsOf(prompt).includes(line))) return null;
  const pieces = (COLOURS[subject.kind] || ((text) => [text]))(subject.text);
  return el("figure", { cls: `subject ${subject.kind}` },
    folded(el("pre", { tabindex: "0", "aria-label": t("Full text") }), pieces),
    el("figcaption", {}, el("span", {}, NAMES()[subject.kind] || subject.kind),
      subject.target ? el("span", { cls: "target", title: subject.target }, within(subject.target, subject.folder)) : null,
      subject.folder ? el("span", { title: subject.folder }, t("in {folder}", { folder: folder(subject.folder) })) : null));
}

// Colours for what a tool wants to do: commands, changes, addresses.  Every character stays where it was: what is drawn
// here is the text itself, cut into pieces.

const WORD = /(\s+)|(#[^\n]*)|('[^']*'|"(?:\\[\s\S]|[^"\\])*"|\$'(?:\\[\s\S]|[^'\\])*')|(\|\||&&|\||&|;;|;|\d*>>|\d*>&\d|\d*>|<<<|<<-?|<|\$\(\(|\$\(|\$\{|\(|\)|\{|\}|`|\n)|((?:\\[\s\S]|[^\s'"|&;<>(){}`\\]|\\$)+)/y;
const BEGINS = new Set(["||", "&&", "|", "&", ";", ";;", "$(", "(", "`", "{", "\n"]);
const WRAPS = new Set(["sudo", "doas", "env", "xargs", "nohup", "time", "exec", "command", "nice", "then", "do", "else", "if", "while", "!"]);
const HARSH = new Set(["sudo", "doas", "rm", "dd", "mkfs", "shred", "chmod", "chown", "kill", "pkill", "killall", "eval", "sh", "bash", "zsh", "shutdown", "reboot", "truncate"]);
const HARSH_FLAG = /^(--force(-with-lease)?|--hard|--no-verify|--delete|-rf?|-fr|-[a-zA-Z]*r[a-zA-Z]*f[a-zA-Z]*)$/;
const piece = (kind, text, more = "") => (kind || more ? el("span", { cls: `${kind && `k-${kind}`} ${more}`.trim() }, text) : text);

// A shell command.  A word is a program where a command begins; what follows sudo or env is one, too.
export function command(text) {
  const out = [];
  let begins = true;
  WORD.lastIndex = 0;
  for (let at = 0; at < text.length; at = WORD.lastIndex) {
    WORD.lastIndex = at;
    const found = WORD.exec(text);
    if (!found) { out.push(text.slice(at)); break; } // an open quotation: as it is
    const [whole, blank, comment, quoted, sign, word] = found;
    if (blank !== undefined) { out.push(whole); if (whole.includes("\n")) begins = true; continue; }
    if (comment !== undefined) out.push(piece(at === 0 || /\s/.test(text[at - 1]) ? "note" : "", whole));
    else if (quoted !== undefined) { out.push(piece("text", whole)); begins = false; }
    else if (sign !== undefined) { out.push(piece("sign", whole)); if (BEGINS.has(sign)) begins = true; }
    else {
      const program = word.split("/").at(-1);
      const assigns = begins && /^\w+=/.test(word);
      const kind = begins && !assigns ? (HARSH.has(program) ? "harsh" : "program")
        : HARSH_FLAG.test(word) ? "harsh" : /^--?[a-zA-Z]/.test(word) ? "flag" : /\$/.test(word) ? "value" : "";
      const one = word.includes("-") ? "k-one" : ""; // a browser would break the line after its hyphen
      out.push(piece(kind, whole, one));
      begins = begins && (assigns || WRAPS.has(program));
    }
  }
  return out;
}

// A change: lines that go, lines that come, and within a pair of them the part that differs.
export function change(text) {
  const lines = text.split("\n");
  const kinds = lines.map((line) => /^\s*\d*\s*([+-])/.exec(line)?.[1] || "");
  return lines.flatMap((line, at) => {
    const pair = kinds[at] === "-" && kinds[at + 1] === "+" && kinds[at + 2] !== "+" && kinds[at - 1] !== "-" ? lines[at + 1]
      : kinds[at] === "+" && kinds[at - 1] === "-" && kinds[at - 2] !== "-" && kinds[at + 1] !== "+" ? lines[at - 1] : "";
    const tag = { "+": "ins", "-": "del" }[kinds[at]];
    return [at ? "\n" : null, tag ? el(tag, {}, ...(pair ? differing(line, pair) : [line])) : line];
  });
}

function differing(line, other) {
  const head = /^\s*\d*\s*[+-]/.exec(line)[0].length;
  const [mine, theirs] = [line.slice(head), other.slice(/^\s*\d*\s*[+-]/.exec(other)[0].length)];
  let [begin, end] = [0, 0];
  while (begin < mine.length && mine[begin] === theirs[begin]) begin += 1;
  while (end < Math.min(mine.length, theirs.length) - begin && mine.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  if (begin + end < 3 || begin + end >= mine.length) return [line];
  return [line.slice(0, head + begin), el("b", {}, mine.slice(begin, mine.length - end)), mine.slice(mine.length - end)];
}

// An address: the host is what decides whose page it is.
export function address(text) {
  const found = /^(\w+:\/\/(?:[^/@\s]*@)?)([^/:?#\s]+)([\s\S]*)$/.exec(text);
  return found ? [found[1], piece("program", found[2]), found[3]] : [text];
}
