// Starting a session from the page: which launcher, in which folder, with which words, under which name.

import { get, post } from "/api.js";
import { PLAIN, el, show, toast } from "/dom.js";
import { t } from "/language.js";

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
    const form = el("section", { cls: "panel stack", "aria-label": t("Start a session"), hidden: true });
    const open = el("button", { type: "button", cls: "main", "aria-expanded": "false", on: { click: () => {
      form.hidden = !form.hidden;
      open.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.querySelector("select, input")?.focus();
    } } }, t("New session"));
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
  const name = el("input", { id: "session-name", type: "text", maxlength: 80, placeholder: t("the tool's name"), ...PLAIN });
  const first = el("textarea", { id: "first", rows: 3, maxlength: 4096, placeholder: t("the first thing to do (optional)"), ...PLAIN });
  const about = el("small");
  const wordsField = el("div", { cls: "grow" }, el("label", { for: "words" }, t("Arguments")), words);
  const chosen = () => launchers.find((launcher) => launcher.name === which.value);
  const begin = el("button", { type: "submit", cls: "main" }, t("Start"));

  function choose() {
    const launcher = chosen();
    folder.value = launcher.cwd;
    folder.readOnly = !launcher.folders.length;
    wordsField.hidden = !launcher.arguments;
    show(known, [...new Set([launcher.cwd, ...launcher.recent, ...launcher.folders])].map((path) => el("option", { value: path })));
    about.textContent = [t("Runs: {command}", { command: launcher.command.join(" ") }), launcher.folders.length ? t("Allowed: {folders} and below", { folders: launcher.folders.join(", ") }) : ""].filter(Boolean).join(". ");
  }

  async function start(event) {
    event.preventDefault();
    const launcher = chosen();
    const more = launcher.arguments ? splitWords(words.value) : [];
    if (more === null) { toast(t("A quotation mark is not closed.")); return; }
    begin.disabled = true;
    const own = folder.value.trim() === launcher.cwd ? "" : folder.value.trim();
    try {
      const { session_id: id, message } = await post("/sessions", { launcher: launcher.name, folder: own, arguments: more, name: name.value.trim(), instruction: first.value.trim() });
      if (message) toast(message);
      window.location.hash = `#session/${id}`;
    } catch (error) { toast(error.message); } finally { begin.disabled = false; }
  }

  which.addEventListener("change", choose);
  choose();
  show(form, el("form", { cls: "stack", on: { submit: start } },
    el("div", { cls: "fields" }, el("div", {}, el("label", { for: "launcher" }, t("Launcher")), which), el("div", { cls: "grow" }, el("label", { for: "folder" }, t("Folder")), folder, known)),
    el("div", { cls: "fields" }, wordsField, el("div", { cls: "grow" }, el("label", { for: "session-name" }, t("Name")), name)), el("div", {}, el("label", { for: "first" }, t("First instruction")), first), about, el("div", { cls: "row end" }, begin)));
}
