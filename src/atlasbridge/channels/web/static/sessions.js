// The list of sessions, what may be started, and one session with its live screen.

import { follow, get, may, post } from "/api.js";
import { PLAIN, el, empty, show, toast } from "/dom.js";
import { KeyStream, encode } from "/keys.js";
import { link, sessions, subscribe } from "/model.js";
import { Screen } from "/screen.js";
import { ago, folder, short } from "/words.js";

const PATIENCE_MS = 20000; // for a session that was started just now to appear
const BAR = [["Enter", "Enter"], ["Escape", "Esc"], ["Tab", "Tab"], ["ArrowUp", "↑"], ["ArrowDown", "↓"], ["ArrowLeft", "←"], ["ArrowRight", "→"],
  ["Backspace", "⌫"], ["Home", "Home"], ["End", "End"], ["PageUp", "PgUp"], ["PageDown", "PgDn"], ["Delete", "Del"]];

function item(session) {
  const waits = session.open_prompt ? el("span", { cls: "tag warn" }, "waits for you") : el("span", { cls: "tag good" }, "runs");
  return el("li", {}, el("a", { cls: "item", href: `#session/${session.session_id}` },
    el("div", { cls: "row" }, el("strong", {}, session.label ? `${session.label} · ${session.tool}` : session.tool), waits),
    el("small", {}, `${folder(session.cwd)} · ${short(session.session_id)} · started ${ago(session.started_at)} · ${session.attached ? "at a terminal" : "in the background"}`)));
}

export function sessionsView(main) {
  const list = el("ul", { cls: "list" });
  const starters = el("div", { cls: "row" });
  show(main, el("div", { cls: "head" }, el("h1", {}, "Sessions"), starters), list);
  const none = () => (link.state === "live" ? empty("No session runs.", "Start one in a terminal: atlasbridge run claude")
    : empty("Not connected.", "Which sessions run is not known until the hub can be reached again."));
  const draw = () => (sessions.size ? show(list, [...sessions.values()].reverse().map(item)) : show(list, el("li", {}, none())));
  if (may("admin")) {
    get("/launchers").then(({ launchers }) => show(starters, launchers.map((launcher) => el("button", {
      type: "button", title: `${launcher.command.join(" ")} in ${launcher.cwd}`, on: { click: () => start(launcher.name) },
    }, `Start ${launcher.name}`)))).catch(() => {});
  }
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
  const line = el("div", { cls: "stack typing", hidden: true });
  const title = el("h1", {}, "Session");
  const about = el("small");
  const sent = el("small", { role: "status", cls: "sent" });
  const came = performance.now();
  let keys = null;
  let everSeen = false;

  function head() {
    const session = sessions.get(id);
    everSeen ||= Boolean(session);
    title.textContent = session ? session.label || session.tool : "Session";
    about.textContent = session ? `${session.command.join(" ")} · ${session.cwd} · ${short(id)}` : everSeen ? `${short(id)} has ended` : short(id);
  }

  const send = (data) => { if (keys && data) keys.type(data); };
  const press = (name, how = {}) => send(encode(name, how, screen.modes));
  const field = el("input", { type: "text", id: "typed", "aria-label": "Text to type", placeholder: "Text to type", enterkeyhint: "send", ...PLAIN });
  const submit = (enter) => { send(field.value); if (enter) press("Enter"); field.value = ""; };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); submit(true); } });
  line.append(
    el("div", { cls: "row" }, el("div", { cls: "grow" }, field), el("button", { type: "button", cls: "main", title: "without Enter", on: { click: () => submit(false) } }, "Type")),
    el("div", { cls: "keybar" }, ...BAR.map(([name, face]) => el("button", { type: "button", on: { click: () => press(name) } }, face)),
      el("button", { type: "button", cls: "refuse", on: { click: () => press("c", { ctrl: true }) } }, "Ctrl-C"),
      el("button", { type: "button", on: { click: () => press("d", { ctrl: true }) } }, "Ctrl-D")),
    el("small", {}, "Or click the screen and type: all keys go to the program, but Tab leaves it (Ctrl-I is Tab there)."), sent);

  function switchOff() {
    keys?.stop();
    keys = null;
    typing.checked = false;
    line.hidden = true;
    screen.node.classList.remove("keys");
  }

  typing.addEventListener("change", async () => {
    const on = typing.checked;
    try {
      await post(`/sessions/${id}/typing`, { on });
      switchOff();
      if (!on) return;
      typing.checked = true;
      line.hidden = false;
      screen.node.classList.add("keys");
      keys = new KeyStream(id, (waiting, trouble) => {
        sent.textContent = waiting ? `${waiting} ${waiting === 1 ? "key" : "keys"} on the way${trouble ? `: ${trouble}` : ""}` : "";
        if (!waiting && trouble) { toast(trouble); switchOff(); }
      });
    } catch (error) { typing.checked = !on; toast(error.message); }
  });
  screen.node.addEventListener("keydown", (event) => {
    if (!keys || event.metaKey || event.isComposing || event.key === "Tab") return;
    if (event.ctrlKey && event.shiftKey && /^[cv]$/i.test(event.key)) return; // copy and paste
    const data = encode(event.key, { ctrl: event.ctrlKey, alt: event.altKey, shift: event.shiftKey }, screen.modes);
    if (data) { event.preventDefault(); send(data); }
  });
  screen.node.addEventListener("paste", (event) => { event.preventDefault(); send(event.clipboardData.getData("text").replace(/\r?\n/g, "\r")); });

  const box = el("div", { cls: "screen-box" });
  const full = () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen ? box.requestFullscreen() : box.classList.toggle("full"));
  const copy = () => navigator.clipboard.writeText([...screen.node.children].filter((node) => !node.classList.contains("cursor")).map((node) => node.textContent.trimEnd()).join("\n")).then(() => toast("Copied."), () => toast("The browser did not allow it."));
  const tools = el("div", { cls: "tools" },
    el("button", { type: "button", "aria-label": "Smaller letters", on: { click: () => screen.grow(-1) } }, "A−"),
    el("button", { type: "button", "aria-label": "Larger letters", on: { click: () => screen.grow(1) } }, "A+"),
    el("button", { type: "button", on: { click: copy } }, "Copy"),
    el("button", { type: "button", on: { click: full } }, "Full screen"));
  const refit = () => screen.fit(screen.cols);
  box.append(tools, screen.node);

  const end = el("button", { type: "button", cls: "refuse", on: { click: () => {
    if (window.confirm("End this session's program?")) post(`/sessions/${id}/end`).then(() => toast("Asked to end."), (error) => toast(error.message));
  } } }, "End it");
  const missed = el("button", { type: "button", cls: "quiet", on: { click: async () => {
    try { await post(`/sessions/${id}/report`); missed.textContent = "Reported, thank you"; missed.disabled = true; } catch (error) { toast(error.message); }
  } } }, "It waits and you missed it");

  show(main, el("div", { cls: "head" }, el("div", {}, title, about), el("div", { cls: "row" }, state, may("admin") ? end : null)),
    el("div", { cls: "stack" }, box,
      may("admin") ? el("div", { cls: "switch panel" }, el("label", { for: "typing" }, "Type into this session",
        el("small", {}, "Your keys go straight to the program. Each use is written to the audit log.")), typing)
        : el("small", {}, "This browser may not type into sessions; a link that may: atlasbridge web --scope admin"),
      may("admin") ? line : null, el("div", { cls: "row" }, el("a", { href: "#sessions" }, "All sessions"), may("answer") ? missed : null)));
  head();
  window.addEventListener("resize", refit);
  document.addEventListener("fullscreenchange", refit);
  const stop = subscribe(head);
  const close = follow(`/sessions/${id}/screen/stream`, (event) => {
    if (event.event === "ended") { state.textContent = "ended"; state.className = "tag"; switchOff(); close(); } else screen.draw(event);
  }, (now) => {
    state.textContent = { live: "live", lost: "reconnecting", gone: "ended", out: "logged out", stranger: "not our hub" }[now];
    state.className = now === "live" ? "tag good" : "tag warn";
    if (now === "live") everSeen = true;
  }, () => {
    state.textContent = "starting";
    return !everSeen && performance.now() - came < PATIENCE_MS;
  });
  return () => { stop(); close(); switchOff(); window.removeEventListener("resize", refit); document.removeEventListener("fullscreenchange", refit); };
}
