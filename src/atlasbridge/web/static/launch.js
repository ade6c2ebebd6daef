// Starting a session from the page: which launcher, in which folder, with which words, under which name.

import { get, post } from "/api.js";
import { PLAIN, el, show, toast } from "/dom.js";

// Words as a shell would read them: quotation marks and backslashes hold blanks together.  null: a quotation is open.
export function splitWords(text) {
  const words = [];
  let word = null;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (letter === "'" || letter === '"') {
      const end = text.indexOf(letter, at + 1);
      if (end < 0) return null;
      word = (word ?? "") + text.slice(at + 1, end);
      at = end;
    } else if (letter === "\\" && at + 1 < text.length) { at += 1; word = (word ?? "") + text[at]; }
    else if (/\s/.test(letter)) { if (word !== null) words.push(word); word = null; }
    else word = (word ?? "") + letter;
  }
  if (word !== null) words.push(word);
  return words;
}

export function starters(place) {
  get("/launchers").then(({ launchers }) => {
    if (!launchers.length) return;
    const form = el("section", { cls: "panel stack", "aria-label": "Start a session", hidden: true });
    const open = el("button", { type: "button", cls: "main", "aria-expanded": "false", on: { click: () => {
      form.hidden = !form.hidden;
      open.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.querySelector("select, input")?.focus();
    } } }, "New session");
    fill(form, launchers);
    show(place.button, open);
    show(place.form, form);
  }).catch((error) => toast(error.message));
}

function fill(form, launchers) {
  const which = el("select", { id: "launcher" }, ...launchers.map((launcher) => el("option", { value: launcher.name }, launcher.name)));
  const folder = el("input", { id: "folder", type: "text", list: "folders", ...PLAIN });
  const known = el("datalist", { id: "folders" });
  const words = el("input", { id: "words", type: "text", placeholder: "--model opus", ...PLAIN });
  const name = el("input", { id: "session-name", type: "text", maxlength: 80, placeholder: "as the tool is called", ...PLAIN });
  const about = el("small");
  const wordsField = el("div", { cls: "grow" }, el("label", { for: "words" }, "Further words"), words);
  const chosen = () => launchers.find((launcher) => launcher.name === which.value);
  const begin = el("button", { type: "submit", cls: "main" }, "Start");

  function choose() {
    const launcher = chosen();
    folder.value = launcher.cwd;
    folder.readOnly = !launcher.folders.length;
    wordsField.hidden = !launcher.arguments;
    show(known, [...new Set([launcher.cwd, ...launcher.recent, ...launcher.folders])].map((path) => el("option", { value: path })));
    about.textContent = `Runs: ${launcher.command.join(" ")}${launcher.folders.length ? `. Allowed: ${launcher.folders.join(", ")} and below` : ""}`;
  }

  async function start(event) {
    event.preventDefault();
    const launcher = chosen();
    const more = launcher.arguments ? splitWords(words.value) : [];
    if (more === null) { toast("A quotation mark is open."); return; }
    begin.disabled = true;
    const own = folder.value.trim() === launcher.cwd ? "" : folder.value.trim();
    try {
      const { session_id: id } = await post("/sessions", { launcher: launcher.name, folder: own, arguments: more, name: name.value.trim() });
      window.location.hash = `#session/${id}`;
    } catch (error) { toast(error.message); } finally { begin.disabled = false; }
  }

  which.addEventListener("change", choose);
  choose();
  show(form, el("form", { cls: "stack", on: { submit: start } },
    el("div", { cls: "fields" }, el("div", {}, el("label", { for: "launcher" }, "What"), which), el("div", { cls: "grow" }, el("label", { for: "folder" }, "Folder"), folder, known)),
    el("div", { cls: "fields" }, wordsField, el("div", { cls: "grow" }, el("label", { for: "session-name" }, "Name"), name)), about, el("div", { cls: "row end" }, begin)));
}
