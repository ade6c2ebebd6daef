// Colours for what a tool wants to do: commands, changes, addresses.  Every character stays where it was: what is drawn
// here is the text itself, cut into pieces.

import { el } from "/dom.js";

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
