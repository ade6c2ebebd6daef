// Draws a terminal's screen from rows of runs [text, foreground, background, flags].  Colours are set as properties.

import { el } from "/dom.js";

const BASE = ["#1b1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#cdd3dc",
  "#6b7686", "#ff8b92", "#b5e890", "#f2d797", "#8cc8ff", "#dd9af0", "#7fd8e4", "#ffffff"];
const STEPS = [0, 95, 135, 175, 215, 255];
const [BOLD, DIM, ITALIC, UNDERLINE, , REVERSE, HIDDEN, STRIKE] = [1, 2, 4, 8, 16, 32, 64, 128];
const HEX = /^#[0-9a-f]{6}$/;

function colour(value) {
  if (typeof value === "string") return HEX.test(value) ? value : "";
  if (!Number.isInteger(value) || value < 0 || value > 255) return "";
  if (value < 16) return BASE[value];
  if (value >= 232) return `rgb(${[0, 1, 2].map(() => 8 + (value - 232) * 10)})`;
  const at = value - 16;
  return `rgb(${[STEPS[Math.floor(at / 36)], STEPS[Math.floor(at / 6) % 6], STEPS[at % 6]]})`;
}

function run([text, fg, bg, flags]) {
  const span = document.createElement("span");
  span.textContent = text;
  let [front, back] = [colour(fg), colour(bg)];
  if (flags & REVERSE) [front, back] = [back || "var(--term)", front || "var(--term-ink)"];
  if (flags & HIDDEN) front = "transparent";
  if (front) span.style.color = front;
  if (back) span.style.backgroundColor = back;
  if (flags & BOLD) span.style.fontWeight = "700";
  if (flags & DIM) span.style.opacity = ".65";
  if (flags & ITALIC) span.style.fontStyle = "italic";
  if (flags & (UNDERLINE | STRIKE)) {
    span.style.textDecoration = `${flags & UNDERLINE ? "underline" : ""} ${flags & STRIKE ? "line-through" : ""}`;
  }
  return span;
}

function row(runs) {
  const line = document.createElement("div");
  for (const piece of runs) if (Array.isArray(piece)) line.append(run(piece));
  return line;
}

export class Screen {
  constructor(label) {
    this.node = el("pre", { cls: "term", role: "img", "aria-label": label, tabindex: "0" });
    this.modes = [];
  }

  text(content) {
    this.node.replaceChildren(...String(content).split("\n").map((line) => row([[line, null, null, 0]])));
  }

  draw(frame) {
    if (Array.isArray(frame.styled)) this.node.replaceChildren(...frame.styled.map(row));
    else if (frame.changed) {
      for (const [at, runs] of Object.entries(frame.changed)) this.node.children[Number(at)]?.replaceWith(row(runs));
    } else if (Array.isArray(frame.lines)) this.text(frame.lines.join("\n"));
    if (Array.isArray(frame.modes)) this.modes = frame.modes;
    if (frame.cols) this.fit(frame.cols);
    this.point(frame);
  }

  // The cursor lies over the rows, after them, so that rows keep their numbers.
  point({ cursor, cursor_visible: visible }) {
    this.cursor ||= el("div", { cls: "cursor" });
    this.cursor.remove();
    if (!visible || !Array.isArray(cursor)) return;
    this.cursor.style.top = `calc(10px + ${Number(cursor[0])} * 1.3em)`;
    this.cursor.style.left = `calc(12px + ${Number(cursor[1])} * 1ch)`;
    this.node.append(this.cursor);
  }

  // For a card: blank rows at both ends are left out, letters are as large as the longest line allows, the end is in sight.
  frame() {
    this.cursor?.remove();
    const rows = [...this.node.children];
    while (rows.length && !rows[0].textContent.trim()) rows.shift().remove();
    while (rows.length && !rows[rows.length - 1].textContent.trim()) rows.pop().remove();
    const lengths = rows.map((line) => line.textContent.trimEnd().replace(/[─━═╌┄-]{8,}.*$/, "").length);
    this.fit(Math.max(20, ...lengths));
    this.node.scrollTop = this.node.scrollHeight;
    return this.node.scrollHeight > this.node.clientHeight + 2;
  }

  fit(cols) {
    const width = this.node.clientWidth - 24;
    if (width > 0) this.node.style.fontSize = `${Math.max(8, Math.min(13, width / cols / 0.603)).toFixed(2)}px`;
  }
}
