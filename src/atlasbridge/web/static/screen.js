// Draws a terminal's screen from rows of runs [text, foreground, background, flags].  Colours are set as properties, and
// letters are never darker on their ground than people can read.

import { el } from "/dom.js";

const BASE = ["#1b1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#cdd3dc",
  "#6b7686", "#ff8b92", "#b5e890", "#f2d797", "#8cc8ff", "#dd9af0", "#7fd8e4", "#ffffff"];
const [GROUND, INK] = ["#0e1217", "#d5dae1"]; // as --term and --term-ink say
const STEPS = [0, 95, 135, 175, 215, 255];
const [BOLD, DIM, ITALIC, UNDERLINE, , REVERSE, HIDDEN, STRIKE] = [1, 2, 4, 8, 16, 32, 64, 128];
const HEX = /^#[0-9a-f]{6}$/;
const READABLE = 4.5;
const PLAIN = /^[\x20-\x7e]*$/;
const WIDE = /^(\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]|.\ufe0f)/u;
const letters = typeof Intl.Segmenter === "function" ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;
const seen = new Map();
const LEAST_ROWS = 24; // a tool alone can have a window of hundreds of rows; of those that are empty below, so many are shown

function colour(value) {
  if (typeof value === "string") return HEX.test(value) ? value : "";
  if (!Number.isInteger(value) || value < 0 || value > 255) return "";
  if (value < 16) return BASE[value];
  const two = (part) => part.toString(16).padStart(2, "0");
  if (value >= 232) return `#${two(8 + (value - 232) * 10).repeat(3)}`;
  const at = value - 16;
  return `#${[STEPS[Math.floor(at / 36)], STEPS[Math.floor(at / 6) % 6], STEPS[at % 6]].map(two).join("")}`;
}

const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const light = (rgb) => rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
const mix = (from, to, share) => from.map((part, at) => Math.round(part + (to[at] - part) * share));

// The colour itself where it can be read, else as near to it as can be.
function readable(front, back, dim) {
  const name = `${front}${back}${dim}`;
  if (!seen.has(name)) {
    const ground = parts(back);
    const wanted = dim ? mix(parts(front), ground, 0.35) : parts(front);
    const goal = light(ground) < 0.18 ? [255, 255, 255] : [0, 0, 0];
    let found = wanted;
    for (let share = 0; share <= 1 && contrast(light(found), light(ground)) < READABLE; share += 0.1) found = mix(wanted, goal, share);
    if (seen.size > 4000) seen.clear();
    seen.set(name, found === wanted && !dim ? "" : `rgb(${found})`);
  }
  return seen.get(name) || front;
}

/** @param {any[]} piece */
function run([text, fg, bg, flags]) {
  const span = document.createElement("span");
  fillCells(span, text);
  let [front, back] = [colour(fg), colour(bg)];
  if (flags & REVERSE) [front, back] = [back || GROUND, front || INK];
  const read = readable(front || INK, back || GROUND, Boolean(flags & DIM));
  if (flags & HIDDEN) span.style.color = "transparent";
  else if (front || read !== INK) span.style.color = read;
  if (back) span.style.backgroundColor = back;
  if (flags & BOLD) span.style.fontWeight = "700";
  if (flags & ITALIC) span.style.fontStyle = "italic";
  if (flags & (UNDERLINE | STRIKE)) {
    span.style.textDecoration = `${flags & UNDERLINE ? "underline" : ""} ${flags & STRIKE ? "line-through" : ""}`;
  }
  return span;
}

// Letters that another font would draw in another width get the cells that the terminal gave them.
function fillCells(span, text) {
  if (PLAIN.test(text) || !letters) { span.textContent = text; return; }
  let plain = "";
  const flush = () => { if (plain) span.append(plain); plain = ""; };
  for (const { segment } of letters.segment(text)) {
    if (PLAIN.test(segment)) { plain += segment; continue; }
    flush();
    const cell = document.createElement("i");
    cell.className = WIDE.test(segment) ? "w2" : "w1";
    cell.textContent = segment;
    span.append(cell);
  }
  flush();
}

function row(runs) {
  const line = document.createElement("div");
  for (const piece of runs) if (Array.isArray(piece)) line.append(run(piece));
  return line;
}

const isEmpty = (line) => !line.textContent.trim() && ![...line.children].some((span) => span.style.backgroundColor);

export class Screen {
  constructor(label, role = "region") {
    this.past = el("div", { cls: "past" });
    this.rows = el("div", { cls: "rows" });
    this.node = el("pre", { cls: "term", role, "aria-label": label, tabindex: "0" }, this.past, this.rows);
    this.modes = [];
    this.cursor = null;
    this.size = 0; // letters of a size that a person chose; 0: as the width allows
    this.cols = 80;
  }

  text(content) {
    this.rows.replaceChildren(...String(content).split("\n").map((line) => row([[line, null, null, 0]])));
  }

  draw(frame) {
    const atEnd = this.node.scrollTop + this.node.clientHeight >= this.node.scrollHeight - 4;
    if (Array.isArray(frame.styled)) this.rows.replaceChildren(...frame.styled.map(row));
    else if (frame.changed) {
      for (const [at, runs] of Object.entries(frame.changed)) this.rows.children[Number(at)]?.replaceWith(row(runs));
    } else if (Array.isArray(frame.lines)) this.text(frame.lines.join("\n"));
    if (Array.isArray(frame.modes)) this.modes = frame.modes;
    if (frame.cols) this.fit(frame.cols);
    this.cursor?.remove();
    this.hideBelow(frame);
    this.point(frame);
    if (atEnd) this.bottom();
  }

  // Empty rows below the last one with words and below the cursor are not drawn.
  hideBelow({ cursor, cursor_visible: visible }) {
    const rows = [...this.rows.children];
    const lowest = visible && Array.isArray(cursor) ? Number(cursor[0]) : 0;
    let used = rows.length;
    while (used > LEAST_ROWS && used - 1 > lowest && isEmpty(rows[used - 1])) used -= 1;
    rows.forEach((line, at) => { line.hidden = at >= used; });
  }

  // What scrolled off, above what is live; the view stays on the live part's first row.
  before(rows) {
    this.past.replaceChildren(...rows.map(row));
    this.node.scrollTop = Math.max(0, this.past.offsetHeight - this.node.clientHeight / 2);
    return rows.length;
  }

  bottom() { this.node.scrollTop = this.node.scrollHeight; }

  words() {
    return [...this.past.children, ...this.rows.children].filter((node) => node !== this.cursor).map((node) => node.textContent.trimEnd()).join("\n").trimEnd();
  }

  // The cursor lies over the rows, after them, so that rows keep their numbers.
  point({ cursor, cursor_visible: visible }) {
    this.cursor ||= el("div", { cls: "cursor", "aria-hidden": "true" });
    this.cursor.remove();
    if (!visible || !Array.isArray(cursor)) return;
    this.cursor.style.top = `calc(${Number(cursor[0])} * 1.25em)`;
    this.cursor.style.left = `calc(${Number(cursor[1])} * 1ch)`;
    this.rows.append(this.cursor);
  }

  // For a card: blank rows at both ends are left out, letters are as large as the longest line allows, the end is in sight.
  frame() {
    this.cursor?.remove();
    const rows = [...this.rows.children];
    while (rows.length && !rows[0].textContent.trim()) rows.shift().remove();
    while (rows.length && !rows[rows.length - 1].textContent.trim()) rows.pop().remove();
    const lengths = rows.map((line) => line.textContent.trimEnd().replace(/[─━═╌┄-]{8,}.*$/, "").length);
    this.fit(Math.max(20, ...lengths));
    this.node.scrollTop = this.node.scrollHeight;
    return this.node.scrollHeight > this.node.clientHeight + 2;
  }

  fit(cols) {
    this.cols = cols;
    const width = this.node.clientWidth - 24;
    const most = this.node.closest(":fullscreen, .full") ? 26 : Math.max(14, Math.min(20, (window.innerHeight - 330) / (24 * 1.25)));
    const least = window.matchMedia("(pointer: coarse)").matches ? 11 : 8; // on a phone letters stay readable, and the screen scrolls
    const fitting = Math.max(least, Math.min(most, width / cols / 0.603));
    if (width > 0) this.node.style.fontSize = `${(this.size || fitting).toFixed(2)}px`;
  }

  // How many rows and letters this screen has room for, in letters that can be read.
  room() {
    const size = this.size || 13;
    const height = Math.max(240, window.innerHeight * 0.6);
    return { cols: Math.max(20, Math.min(300, Math.floor((this.node.clientWidth - 24) / (size * 0.603)))), rows: Math.max(8, Math.min(200, Math.floor(height / (size * 1.25)))) };
  }

  grow(by) {
    this.size = Math.max(7, Math.min(28, (this.size || parseFloat(this.node.style.fontSize) || 12) + by));
    this.fit(this.cols);
  }
}
