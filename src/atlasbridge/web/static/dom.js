// Builds elements.  Text becomes text nodes and nothing else: no string is ever read as markup.

import { t } from "/words.js";

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attributes, children);
  return node;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

// A browser breaks a line after any hyphen: what has one, as --coverage, stays whole where a line has room for it.
export const unbroken = (text) => text.split(/(\S*-\S*)/).map((part, at) => (at % 2 ? el("span", { cls: "k-one" }, part) : part));

export function show(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
}

// The same children in this order with as few moves as can be: what stays where it is keeps its place, its focus and its layout.
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const node of [...parent.children]) if (!wanted.has(node)) node.remove();
  nodes.forEach((node, at) => { if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] || null); });
}

export const PLAIN = { autocomplete: "off", autocapitalize: "off", autocorrect: "off", spellcheck: "false" };

export function toast(sentence) {
  const box = document.getElementById("toasts");
  const note = el("div", { cls: "toast" }, sentence);
  while (box.children.length >= 2) box.firstChild.remove();
  box.append(note);
  setTimeout(() => note.remove(), 6000);
}

export function speak(sentence) {
  document.getElementById("speaker").textContent = sentence;
}

// A text in a box of limited height, and a button below it that says so for as long as lines of it are out of sight: where
// scroll bars hide themselves, nothing else would tell that a command goes on.
export function whole(text) {
  const more = el("button", { type: "button", cls: "quiet out-of-sight", hidden: true, on: { click: () => text.classList.add("whole") } });
  new ResizeObserver(() => {
    const row = parseFloat(getComputedStyle(text).lineHeight) || 20;
    const hidden = Math.ceil((text.scrollHeight - text.clientHeight) / row);
    more.hidden = hidden < 1;
    more.textContent = t("{hidden} of {total} lines hidden: show all", { hidden, total: Math.round(text.scrollHeight / row) });
  }).observe(text);
  return [text, more];
}

export function empty(sentence, more = "") {
  const picture = svg("svg", { viewBox: "0 0 64 64", "aria-hidden": "true" },
    svg("path", { d: "M6 44h52M12 44c0-28 40-28 40 0M24 44V28M40 44V28M32 44V24" }));
  return el("div", { cls: "empty" }, picture, el("p", {}, sentence), more && el("p", { cls: "soft" }, more));
}
