// The list of sessions, those that wait first, and what may be started.

import { get, may, post } from "/api.js";
import { el, empty, PLAIN, show, toast } from "/dom.js";
import { link, prompts, sessions, subscribe } from "/model.js";
import { sentence } from "/subject.js";
import { ago, folder, short, t } from "/words.js";

const MANY = 8;
const MOST_ENDED = 20;

function item(session) {
  const prompt = prompts.get(session.open_prompt);
  const idle = prompt?.constraints.idle;
  const state = session.stopped ? el("span", { cls: "tag warn" }, t("stopped")) : !session.open_prompt ? el("span", { cls: "tag good" }, t("running")) : idle ? el("span", { cls: "tag" }, t("finished")) : el("span", { cls: "tag warn" }, t("waiting for you"));
  return el("li", {}, el("a", { cls: "run", href: `#session/${session.session_id}` },
    el("span", { cls: "run-who" }, el("strong", {}, session.label || session.tool), el("small", { title: session.cwd }, [session.machine, session.label ? session.tool : "", folder(session.cwd)].filter(Boolean).join(" · "))),
    el("span", { cls: "peek" }, prompt ? sentence(prompt) : ""),
    el("small", {}, `${session.attached ? t("at a terminal") : t("in the background")}, ${ago(session.started_at)} · ${short(session.session_id)}`), state));
}

function endedItem(session) {
  const status = session.exit_code === null ? t("ended") : `${t("ended")} (${session.exit_code})`;
  return el("li", {}, el("a", { cls: "run", href: `#session/${session.session_id}` },
    el("span", { cls: "run-who" }, el("strong", {}, session.label || session.tool), el("small", { title: session.cwd }, folder(session.cwd))),
    el("span", { cls: "peek" }, ""), el("small", {}, `${ago(session.ended_at || session.started_at)} · ${short(session.session_id)}`), el("span", { cls: "tag" }, status)));
}

export function sessionsView(main) {
  const list = el("ul", { cls: "list records" });
  const ended = el("ul", { cls: "list records", hidden: true, "aria-label": t("ended") });
  const button = el("div", { cls: "row" });
  const form = el("div");
  const filter = el("input", { type: "search", placeholder: t("Filter by name, tool, folder"), "aria-label": t("Filter the sessions"), hidden: true, ...PLAIN });
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Sessions")), button), el("div", { cls: "stack" }, form, filter, list, ended));
  const none = () => (link.state === "live" ? empty(t("No session is running."), t("Start one in a terminal: atlasbridge run claude"))
    : empty(t("Not connected."), t("The page shows running sessions once it reaches the hub again.")));
  let drawing = false;
  let running = -1;

  async function drawEnded() {
    try {
      const all = (await get("/sessions?all=true")).sessions.filter((session) => session.state !== "active");
      ended.hidden = !all.length;
      show(ended, all.reverse().slice(0, MOST_ENDED).map(endedItem));
    } catch { ended.hidden = true; } // the list of running sessions says what is wrong
  }

  function draw() {
    drawing = false;
    if (link.state === "off") return; // the first word is awaited
    if (running !== sessions.size) { running = sessions.size; drawEnded(); }
    const words = filter.value.trim().toLowerCase();
    const fits = (session) => !words || [session.label, session.tool, session.cwd, session.session_id].join(" ").toLowerCase().includes(words);
    const rank = (session) => (!session.open_prompt ? 2 : prompts.get(session.open_prompt)?.constraints.idle ? 1 : 0);
    const found = [...sessions.values()].reverse().filter(fits).sort((a, b) => rank(a) - rank(b));
    filter.hidden = sessions.size <= MANY;
    show(list, found.length ? found.map(item) : el("li", {}, sessions.size ? empty(t("No matches.")) : none()));
  }

  if (may("admin")) starters({ button, form });
  filter.addEventListener("input", draw);
  draw();
  return subscribe(() => { if (!drawing) { drawing = true; requestAnimationFrame(draw); } });
}

// Starting a session from the page: which launcher, in which folder, with which words, under which name.

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

function starters(place) {
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
