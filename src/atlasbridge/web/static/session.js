// One session: its live screen with what scrolled off it, its name, its end, and what it waits for.

import { call, follow, get, may, offers, post } from "/api.js";
import { PLAIN, el, show, toast } from "/dom.js";
import { prompts, sessions, subscribe } from "/model.js";
import { queuePanel } from "/queue.js";
import { Screen } from "/screen.js";
import { sentence } from "/subject.js";
import { typingBar } from "/typing.js";
import { short } from "/words.js";

const PATIENCE_MS = 20000; // for a session that was started just now to appear

export function sessionView(main, page, id) {
  const screen = new Screen("The session's screen");
  const state = el("span", { cls: "tag", role: "status" }, "connecting");
  const title = el("h1", {}, "Session");
  const about = el("small", { cls: "about-line" });
  const asks = el("div", { cls: "asks", hidden: true });
  const why = el("div", { cls: "panel stack why", hidden: true, role: "region", "aria-label": "Why am I not asked?", tabindex: "-1" });
  const typing = typingBar(id, screen);
  const queue = queuePanel(id);
  let waited = "not looked yet";
  const came = performance.now();
  let everSeen = false;

  function head() {
    const session = sessions.get(id);
    const prompt = prompts.get(session?.open_prompt);
    everSeen ||= Boolean(session);
    title.textContent = session ? session.label || session.tool : "Session";
    about.textContent = session ? `${session.label ? `${session.tool} · ` : ""}${session.cwd} · ${short(id)} · ${[session.command[0].split("/").at(-1), ...session.command.slice(1)].join(" ")}` : everSeen ? `${short(id)} has ended` : short(id);
    about.title = about.textContent;
    asks.hidden = !prompt;
    if (prompt) show(asks, el("span", { cls: `tag ${prompt.constraints.idle ? "good" : "warn"}` }, prompt.constraints.idle ? "finished" : "asks"), el("span", { cls: "peek" }, sentence(prompt)), el("a", { cls: "button main", href: `#prompt/${prompt.prompt_id}` }, prompt.constraints.idle ? "Say what next" : "Answer"));
    halted.hidden = !session?.stopped;
    if (waited !== session?.open_prompt) { waited = session?.open_prompt; queue.refresh(); }
    rename.value = document.activeElement === rename ? rename.value : session?.label || "";
  }

  const halted = el("div", { cls: "asks", hidden: true }, el("span", { cls: "tag warn" }, "stopped"), el("span", { cls: "peek" }, "Ctrl-Z has stopped it: it takes no answer until it goes on."),
    may("admin") ? el("button", { type: "button", cls: "main", on: { click: () => post(`/sessions/${id}/resume`).then(() => toast("It goes on."), (error) => toast(error.message)) } }, "Let it go on") : null);
  const rename = el("input", { id: "rename", type: "text", maxlength: 80, placeholder: "no name of its own", ...PLAIN });
  const saveName = async (event) => {
    event.preventDefault();
    try { await call("PUT", `/sessions/${id}/name`, { name: rename.value.trim() }); toast("Renamed."); } catch (error) { toast(error.message); }
  };
  const end = (force) => () => {
    const sure = force ? "Kill this session's program at once? What it has not saved is lost." : "End this session's program?";
    if (window.confirm(sure)) post(`/sessions/${id}/end`, { force }).then(() => toast("Asked to end."), (error) => toast(error.message));
  };
  const missed = el("button", { type: "button", on: { click: async () => {
    try { await post(`/sessions/${id}/report`); missed.textContent = "Reported, thank you"; missed.disabled = true; } catch (error) { toast(error.message); }
  } } }, "You missed one: it waits for me");

  async function explain() {
    try {
      const told = await get(`/sessions/${id}/why`);
      const asked = prompts.get(sessions.get(id)?.open_prompt);
      show(why, el("h2", {}, asked ? "You are asked" : "Why am I not asked?"), el("ol", {}, ...(told.why.length ? told.why : ["Nothing has been judged yet."]).map((line) => el("li", {}, line))),
        el("small", {}, "This is what was judged from the program's processes and its screen, newest first to last."), may("answer") ? el("div", { cls: "row" }, missed) : null);
      why.hidden = false;
      why.focus();
    } catch (error) { toast(error.message); }
  }

  const box = el("div", { cls: "screen-box" });
  const full = () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen ? box.requestFullscreen() : box.classList.toggle("full"));
  const copy = () => navigator.clipboard.writeText(screen.words()).then(() => toast("Copied."), () => toast("The browser did not allow it."));
  const above = el("button", { type: "button", on: { click: async () => {
    above.disabled = true;
    try {
      const frame = await get(`/sessions/${id}/screen?styled=true&past=true`);
      const count = screen.before(frame.past || []);
      if (!count) toast(frame.alternate ? "A full-screen program keeps no lines above its screen." : "Nothing has scrolled off the screen.");
    } catch (error) { toast(error.message); }
    above.disabled = false;
  } } }, "Earlier lines");
  const tools = el("div", { cls: "tools", role: "toolbar", "aria-label": "The screen" }, above,
    el("button", { type: "button", on: { click: () => screen.grow(-1) } }, "A−", el("span", { cls: "unseen" }, " smaller letters")),
    el("button", { type: "button", on: { click: () => screen.grow(1) } }, "A+", el("span", { cls: "unseen" }, " larger letters")),
    el("button", { type: "button", on: { click: copy } }, "Copy"),
    el("button", { type: "button", on: { click: full } }, "Full screen"));
  const refit = () => screen.fit(screen.cols);
  box.append(tools, screen.node);

  show(main, el("div", { cls: "head session-head" }, el("div", { cls: "grow" }, el("a", { cls: "back", href: "#sessions" }, "‹ Sessions"), el("div", { cls: "row" }, title, state), about)),
    el("div", { cls: "stack wide" }, halted, asks, box, typing.node, queue.node, why,
      el("details", { cls: "panel manage" }, el("summary", {}, "Name, end, and why am I not asked?"), el("div", { cls: "stack" },
        may("admin") ? el("form", { on: { submit: saveName } }, el("label", { for: "rename" }, "Name"), el("div", { cls: "row" }, el("div", { cls: "grow" }, rename), el("button", { type: "submit" }, "Rename"))) : null,
        el("div", { cls: "row" }, el("button", { type: "button", on: { click: explain } }, "Why am I not asked?"), el("a", { href: `#history/${id}` }, "What it asked before"),
          may("admin") ? el("span", { cls: "row push" }, el("button", { type: "button", cls: "refuse", on: { click: end(false) } }, "End it"), el("button", { type: "button", cls: "quiet", on: { click: end(true) } }, "Kill it")) : null)))));
  document.body.classList.add("broad");
  head();
  window.addEventListener("resize", refit);
  document.addEventListener("fullscreenchange", refit);
  const stop = subscribe(head);
  const close = follow(`/sessions/${id}/screen/stream`, (event) => {
    if (event.event === "ended") { state.textContent = "ended"; state.className = "tag"; typing.off(); close(); } else screen.draw(event);
  }, (now) => {
    state.textContent = { live: "live", lost: "reconnecting", gone: "ended", out: "logged out", stranger: "not our hub" }[now];
    state.className = now === "live" ? "tag good" : "tag warn";
    screen.node.classList.toggle("stale", now !== "live");
    if (now === "live") everSeen = true;
  }, () => {
    state.textContent = "starting";
    return !everSeen && performance.now() - came < PATIENCE_MS;
  });
  return () => { stop(); close(); typing.off(); window.removeEventListener("resize", refit); document.removeEventListener("fullscreenchange", refit); };
}
