// The list of sessions, what may be started, and one session with its live screen.

import { follow, get, post } from "/api.js";
import { el, empty, show, toast } from "/dom.js";
import { sessions, subscribe } from "/model.js";
import { Screen } from "/screen.js";
import { ago, folder, short } from "/words.js";

const KEYS = { Enter: "\r", Escape: "\x1b", Tab: "\t", Backspace: "\x7f", ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D" };

function item(session) {
  const waits = session.open_prompt ? el("span", { cls: "tag warn" }, "waits for you") : el("span", { cls: "tag good" }, "runs");
  return el("li", {}, el("a", { cls: "item", href: `#session/${session.session_id}` },
    el("div", { cls: "row" }, el("strong", {}, session.label ? `${session.tool} · ${session.label}` : session.tool), waits),
    el("small", {}, `${folder(session.cwd)} · ${short(session.session_id)} · started ${ago(session.started_at)} · ${session.attached ? "at a terminal" : "in the background"}`)));
}

export function sessionsView(main) {
  const list = el("ul", { cls: "list" });
  const starters = el("div", { cls: "row" });
  show(main, el("div", { cls: "head" }, el("h1", {}, "Sessions"), starters), list);
  const draw = () => (sessions.size
    ? show(list, [...sessions.values()].reverse().map(item))
    : show(list, empty("No session runs.", "Start one in a terminal: atlasbridge run claude")));
  get("/launchers").then(({ launchers }) => show(starters, launchers.map((launcher) => el("button", {
    type: "button", title: launcher.command.join(" "), on: { click: () => start(launcher.name) },
  }, `Start ${launcher.name}`)))).catch(() => {});
  async function start(name) {
    try {
      const { session_id: id } = await post("/sessions", { launcher: name });
      window.location.hash = `#session/${id}`;
    } catch (error) { toast(error.message); }
  }
  draw();
  return subscribe(draw);
}

export function sessionView(main, page, id) {
  const screen = new Screen("The session's screen");
  const state = el("span", { cls: "tag" }, "connecting");
  const typing = el("input", { type: "checkbox", id: "typing" });
  const line = el("div", { cls: "stack", hidden: true });
  const title = el("h1", {}, "Session");
  const about = el("small");

  function head() {
    const session = sessions.get(id);
    title.textContent = session ? session.label || session.tool : "Session";
    about.textContent = session ? `${session.command.join(" ")} · ${session.cwd} · ${short(id)}` : `${short(id)} has ended`;
  }

  const send = (data) => post(`/sessions/${id}/keys`, { data }).catch((error) => toast(error.message));
  const arrow = (letter) => `\x1b${screen.modes.includes(1) ? "O" : "["}${letter}`;
  const code = (name) => (name.startsWith("Arrow") ? arrow(KEYS[name]) : KEYS[name]);
  const field = el("input", { type: "text", "aria-label": "Text to type", placeholder: "Text to type", autocomplete: "off", autocapitalize: "off" });
  const submit = () => { if (field.value) send(field.value); field.value = ""; };
  const key = (name, face) => el("button", { type: "button", on: { click: () => send(code(name)) } }, face);
  line.append(
    el("div", { cls: "row" }, el("div", { cls: "grow" }, field), el("button", { type: "button", cls: "main", on: { click: submit } }, "Type")),
    el("div", { cls: "keybar" }, key("Enter", "Enter"), key("Escape", "Esc"), key("Tab", "Tab"), key("ArrowUp", "↑"), key("ArrowDown", "↓"),
      key("ArrowLeft", "←"), key("ArrowRight", "→"), key("Backspace", "⌫"),
      el("button", { type: "button", cls: "refuse", on: { click: () => send("\x03") } }, "Ctrl-C")));

  typing.addEventListener("change", async () => {
    try {
      await post(`/sessions/${id}/typing`, { on: typing.checked });
      line.hidden = !typing.checked;
      screen.node.classList.toggle("keys", typing.checked);
    } catch (error) { typing.checked = false; toast(error.message); }
  });
  screen.node.addEventListener("keydown", (event) => {
    if (!typing.checked || event.metaKey || event.altKey) return;
    let data = KEYS[event.key] ? code(event.key) : event.key.length === 1 ? event.key : "";
    if (event.ctrlKey) data = /^[a-z]$/.test(event.key) ? String.fromCharCode(event.key.charCodeAt(0) - 96) : "";
    if (data) { event.preventDefault(); send(data); }
  });

  const end = el("button", { type: "button", cls: "refuse", on: { click: () => {
    if (window.confirm("End this session's program?")) post(`/sessions/${id}/end`).then(() => toast("Asked to end."), (error) => toast(error.message));
  } } }, "End it");
  const missed = el("button", { type: "button", cls: "quiet", on: { click: async () => {
    try { await post(`/sessions/${id}/report`); missed.textContent = "Reported, thank you"; missed.disabled = true; } catch (error) { toast(error.message); }
  } } }, "It waits and you missed it");

  show(main, el("div", { cls: "head" }, el("div", {}, title, about), el("div", { cls: "row" }, state, end)),
    el("div", { cls: "stack" }, screen.node,
      el("div", { cls: "switch panel" }, el("label", { for: "typing" }, "Type into this session",
        el("small", {}, "Your keys go straight to the program. Each use is written to the audit log.")), typing),
      line, el("div", { cls: "row" }, el("a", { href: "#sessions" }, "All sessions"), missed)));
  head();
  const stop = subscribe(head);
  const close = follow(`/sessions/${id}/screen/stream`, (event) => {
    if (event.event === "ended") { state.textContent = "ended"; state.className = "tag"; close(); } else screen.draw(event);
  }, (now) => {
    state.textContent = { live: "live", lost: "reconnecting", gone: "ended", out: "logged out" }[now];
    state.className = now === "live" ? "tag good" : "tag warn";
  });
  return () => { stop(); close(); };
}
