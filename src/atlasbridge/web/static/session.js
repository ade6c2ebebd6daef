// One session: its live screen with what scrolled off it, its name, its end, and what it waits for.

import { call, follow, get, may, offers, post } from "/api.js";
import { el, PLAIN, show, toast } from "/dom.js";
import { prompts, sessions, subscribe } from "/model.js";
import { Screen } from "/screen.js";
import { change, sentence } from "/subject.js";
import { typingBar } from "/typing.js";
import { ago, short, t } from "/words.js";

// The files that have changed, each with its differences behind a tap.
function changesOf({ files, count, added, removed, whole, repository, commit }) {
  if (!count) return [el("p", {}, t("Nothing has changed since the session started."))];
  const counts = repository ? ` · ${t("+{added} −{removed} lines", { added, removed })}` : "";
  const words = { added: t("new"), changed: t("changed"), removed: t("removed"), written: t("written") };
  const why = (file) => (file.binary ? t("not text") : file.large ? t("too large to compare") : file.unknown ? t("content not readable") : repository ? `+${file.added} −${file.removed}` : "");
  const row = (file) => el("summary", {}, el("span", { cls: `tag ${file.status}` }, words[file.status]), el("span", { cls: "target" }, file.path), el("small", {}, why(file)));
  return [el("p", { cls: "counts" }, t("1 file changed|{count} files changed", { count }), counts, commit ? el("small", {}, ` · ${t("compared with {commit}", { commit })}`) : null),
    whole ? null : el("p", { cls: "word warn" }, t("The folder is very large: AtlasBridge could not read all of it.")),
    ...files.map((file) => el("details", { open: files.length === 1 }, row(file), file.diff ? el("pre", { tabindex: "0" }, ...change(file.diff), file.cut ? `\n${t("… cut here")}` : null) : null)),
    count > files.length ? el("p", {}, t("1 more file|{count} more files", { count: count - files.length })) : null];
}

const PATIENCE_MS = 20000; // for a session that was started just now to appear

export function sessionView(main, page, id) {
  const screen = new Screen(t("The session's screen"));
  const state = el("span", { cls: "tag", role: "status" }, t("connecting"));
  const title = el("h1", {}, t("Session"));
  const about = el("small", { cls: "about-line" });
  const asks = el("div", { cls: "asks", hidden: true });
  const why = el("div", { cls: "panel stack why", hidden: true, role: "region", "aria-label": t("Why am I not asked?"), tabindex: "-1" });
  const typing = typingBar(id, screen);
  const queue = queuePanel(id);
  let waited = null;
  const came = performance.now();
  let everSeen = false;
  let over = false; // it had ended before this page came: its last screen is shown

  async function showEnd() {
    try {
      const past = await get(`/sessions/${id}`);
      if (past.state === "active") return;
      over = true;
      state.textContent = past.exit_code === null ? t("ended") : `${t("ended")} (${past.exit_code})`;
      title.textContent = past.label || past.tool;
      about.textContent = `${past.cwd} · ${short(id)}`;
      screen.draw(await get(`/sessions/${id}/screen?styled=true`));
    } catch (error) { if (over) toast(error.message); }
  }

  function head() {
    const session = sessions.get(id);
    const prompt = prompts.get(session?.open_prompt);
    everSeen ||= Boolean(session);
    if (over) return;
    title.textContent = session ? session.label || session.tool : t("Session");
    about.textContent = session ? `${session.label ? `${session.tool} · ` : ""}${session.cwd} · ${short(id)} · ${[session.command[0].split("/").at(-1), ...session.command.slice(1)].join(" ")}` : everSeen ? t("{name} has ended", { name: short(id) }) : short(id);
    about.title = about.textContent;
    asks.hidden = !prompt;
    if (prompt) show(asks, el("span", { cls: `tag ${prompt.constraints.idle ? "good" : "warn"}` }, prompt.constraints.idle ? t("finished") : t("asks")), el("span", { cls: "peek" }, sentence(prompt)), el("a", { cls: "button main", href: `#prompt/${prompt.prompt_id}` }, prompt.constraints.idle ? t("Next instruction") : t("Answer")));
    halted.hidden = !session?.stopped;
    if (waited !== session?.open_prompt) { waited = session?.open_prompt; queue.refresh(); }
    rename.value = document.activeElement === rename ? rename.value : session?.label || "";
  }

  const halted = el("div", { cls: "asks", hidden: true }, el("span", { cls: "tag warn" }, t("stopped")), el("span", { cls: "peek" }, t("Ctrl-Z stopped this program. Resume it before you answer.")),
    may("admin") ? el("button", { type: "button", cls: "main", on: { click: () => post(`/sessions/${id}/resume`).then(() => toast(t("Resumed.")), (error) => toast(error.message)) } }, t("Resume")) : null);
  const rename = el("input", { id: "rename", type: "text", maxlength: 80, placeholder: t("no name"), ...PLAIN });
  const saveName = async (event) => {
    event.preventDefault();
    try { await call("PUT", `/sessions/${id}/name`, { name: rename.value.trim() }); toast(t("Renamed.")); } catch (error) { toast(error.message); }
  };
  const end = (force) => () => {
    const sure = force ? t("Kill this session's program at once? What it has not saved is lost.") : t("End this session's program?");
    if (window.confirm(sure)) post(`/sessions/${id}/end`, { force }).then(() => toast(t("AtlasBridge asked the program to end.")), (error) => toast(error.message));
  };
  const missed = el("button", { type: "button", on: { click: async () => {
    try { await post(`/sessions/${id}/report`); missed.textContent = t("Reported, thank you"); missed.disabled = true; } catch (error) { toast(error.message); }
  } } }, t("Report a missed prompt"));

  async function explain() {
    try {
      const told = await get(`/sessions/${id}/why`);
      const asked = prompts.get(sessions.get(id)?.open_prompt);
      show(why, el("h2", {}, asked ? t("Why you are asked") : t("Why am I not asked?")), el("ol", {}, ...(told.why.length ? told.why : [t("AtlasBridge has not examined this session yet.")]).map((line) => el("li", {}, line))),
        el("small", {}, t("This is what AtlasBridge concluded from the program's processes and its screen.")), may("answer") ? el("div", { cls: "row" }, missed) : null);
      why.hidden = false;
      why.focus();
    } catch (error) { toast(error.message); }
  }

  const box = el("div", { cls: "screen-box" });
  const full = () => (document.fullscreenElement ? document.exitFullscreen() : box.requestFullscreen ? box.requestFullscreen() : box.classList.toggle("full"));
  const copy = () => navigator.clipboard.writeText(screen.words()).then(() => toast(t("Copied.")), () => toast(t("The browser did not allow copying.")));
  const above = el("button", { type: "button", on: { click: async () => {
    above.disabled = true;
    try {
      const frame = await get(`/sessions/${id}/screen?styled=true&past=true`);
      const count = screen.before(frame.past || []);
      if (!count) toast(frame.alternate ? t("A full-screen program has no earlier lines.") : t("No lines have scrolled off the screen."));
    } catch (error) { toast(error.message); }
    above.disabled = false;
  } } }, t("Earlier lines"));
  const said = el("div", { cls: "words", role: "region", "aria-label": t("The conversation as text"), tabindex: "0", hidden: true });
  const asText = el("button", { type: "button", "aria-pressed": "false", on: { click: () => showWords(said.hidden) } }, t("As text"));
  let reading = 0;
  async function showWords(on) {
    if (on) await showChanges(false);
    said.hidden = !on;
    screen.node.hidden = on;
    asText.setAttribute("aria-pressed", String(on));
    clearInterval(reading);
    if (!on) return;
    await readWords();
    said.scrollTop = said.scrollHeight;
    reading = window.setInterval(() => { if (document.visibilityState === "visible") readWords(); }, 2000);
  }
  async function readWords() {
    try {
      const { text } = await get(`/sessions/${id}/words`);
      const atEnd = said.scrollTop + said.clientHeight >= said.scrollHeight - 8;
      if (said.textContent !== text) said.textContent = text || t("No output yet.");
      if (atEnd) said.scrollTop = said.scrollHeight;
    } catch (error) { toast(error.message); }
  }
  const changed = el("div", { cls: "words changes", role: "region", "aria-label": t("Changes since the session started"), tabindex: "0", hidden: true });
  const asChanges = el("button", { type: "button", "aria-pressed": "false", on: { click: () => showChanges(changed.hidden) } }, t("Changes"));
  async function showChanges(on) {
    if (on) await showWords(false);
    changed.hidden = !on;
    screen.node.hidden = on;
    asChanges.setAttribute("aria-pressed", String(on));
    if (!on) return;
    show(changed, el("p", {}, t("Reading the folder …")));
    try { show(changed, ...changesOf(await get(`/sessions/${id}/changes`))); } catch (error) { show(changed, el("p", {}, error.message)); }
  }
  let lent = 0; // the columns that this screen has given to the session; 0: it has its own size
  let fitted = false; // the session has drawn itself in them
  const lend = el("button", { type: "button", "aria-pressed": "false", on: { click: () => lendSize(!lent) } }, t("Fit to my screen"));
  async function lendSize(on) {
    const { rows, cols } = on ? screen.room() : { rows: 0, cols: 0 };
    try {
      await post(`/sessions/${id}/size`, { rows, cols });
      showLent(cols);
    } catch (error) { toast(error.message); }
  }
  function showLent(cols) {
    [lent, fitted] = [cols, false];
    lend.setAttribute("aria-pressed", String(lent > 0));
    screen.node.classList.toggle("lent", lent > 0);
  }
  // A terminal that attaches, and a new hub, give the session its size: then this screen has lent nothing any more.
  function checkSize(cols) {
    if (fitted && cols !== lent) showLent(0);
    fitted = lent > 0 && cols === lent;
  }
  const tools = el("div", { cls: "tools", role: "toolbar", "aria-label": t("The screen") }, offers("words") ? asText : null, offers("changes") ? asChanges : null, offers("past") ? above : null,
    may("admin") && offers("size") ? lend : null,
    el("button", { type: "button", on: { click: () => screen.grow(-1) } }, "A−", el("span", { cls: "unseen" }, ` ${t("smaller letters")}`)),
    el("button", { type: "button", on: { click: () => screen.grow(1) } }, "A+", el("span", { cls: "unseen" }, ` ${t("larger letters")}`)),
    el("button", { type: "button", on: { click: copy } }, t("Copy")),
    el("button", { type: "button", on: { click: full } }, t("Full screen")));
  const refit = () => { if (lent) lendSize(true); else screen.fit(screen.cols); };
  box.append(tools, screen.node, said, changed);

  show(main, el("div", { cls: "head session-head" }, el("div", { cls: "grow" }, el("a", { cls: "back", href: "#sessions" }, `‹ ${t("Sessions")}`), el("div", { cls: "row" }, title, state), about)),
    el("div", { cls: "stack wide" }, halted, asks, box, typing.node, queue.node, why,
      offers("why") ? el("details", { cls: "panel manage" }, el("summary", {}, t("Rename, end, troubleshoot")), el("div", { cls: "stack" },
        may("admin") ? el("form", { on: { submit: saveName } }, el("label", { for: "rename" }, t("Name")), el("div", { cls: "row" }, el("div", { cls: "grow" }, rename), el("button", { type: "submit" }, t("Rename")))) : null,
        el("div", { cls: "row" }, el("button", { type: "button", on: { click: explain } }, t("Why am I not asked?")), el("a", { href: `#history/${id}` }, t("Earlier prompts")),
          may("admin") ? el("span", { cls: "row push" }, el("button", { type: "button", cls: "refuse", on: { click: end(false) } }, t("End session")), el("button", { type: "button", cls: "quiet", on: { click: end(true) } }, t("Kill program"))) : null))) : null));
  head();
  window.addEventListener("resize", refit);
  document.addEventListener("fullscreenchange", refit);
  if (!everSeen) showEnd();
  const stop = subscribe(head);
  const close = follow(`/sessions/${id}/screen/stream`, (event) => {
    if (event.event === "ended") { state.textContent = t("ended"); state.className = "tag"; typing.off(); close(); } else { screen.draw(event); checkSize(screen.cols); }
  }, (now) => {
    if (over) return;
    state.textContent = { live: t("live"), lost: t("reconnecting"), gone: t("ended"), out: t("logged out"), stranger: t("not your hub") }[now];
    state.className = now === "live" ? "tag good" : "tag warn";
    screen.node.classList.toggle("stale", now !== "live");
    if (now === "live") everSeen = true;
  }, () => {
    if (!over) state.textContent = t("starting");
    return !over && !everSeen && performance.now() - came < PATIENCE_MS;
  });
  return () => { stop(); close(); clearInterval(reading); typing.off(); window.removeEventListener("resize", refit); document.removeEventListener("fullscreenchange", refit); };
}

// Instructions for when a tool is done: what waits for one session, one more, one taken back.

function queuePanel(id) {
  if (!offers("queue")) return { node: null, refresh: () => {} };
  const list = el("ol", { cls: "queue", role: "list" });
  const field = el("textarea", { id: "queue-words", rows: 2, maxlength: 4096, ...PLAIN });
  const form = el("form", { on: { submit: add } }, el("label", { for: "queue-words" }, t("Instruction to type when it is done")),
    el("div", { cls: "row" }, el("div", { cls: "grow" }, field), el("button", { type: "submit" }, t("Add to queue"))));
  const node = el("section", { cls: "panel stack", "aria-label": t("Queued instructions"), hidden: true },
    el("h2", {}, t("Queued")), list, may("answer") ? form : null, el("small", {}, t("AtlasBridge types one instruction at each idle input box, never into a question.")));

  async function back(item) {
    try { toast((await call("DELETE", `/queue/${item.queue_id}`)).message); } catch (error) { toast(error.message); }
    refresh();
  }

  async function add(event) {
    event.preventDefault();
    if (!field.value.trim()) return;
    try {
      toast((await post(`/sessions/${id}/queue`, { text: field.value })).message);
      field.value = "";
    } catch (error) { toast(error.message); }
    refresh();
  }

  async function refresh() {
    try {
      const mine = (await get("/queue")).queue.filter((item) => item.session_id === id);
      show(list, mine.map((item) => el("li", {}, el("span", { cls: "said" }, item.text), el("small", {}, `${item.by_name}, ${ago(item.created_at)}`),
        may("answer") ? el("button", { type: "button", cls: "quiet", on: { click: () => back(item) } }, t("Remove"), el("span", { cls: "unseen" }, `: ${item.text}`)) : null)));
      list.hidden = !mine.length;
      node.hidden = false;
    } catch { node.hidden = true; } // a hub that is away, or older than this page
  }
  return { node, refresh };
}
