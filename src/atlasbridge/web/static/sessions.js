// The list of sessions, those that wait first, and what may be started.

import { get, may } from "/api.js";
import { PLAIN, el, empty, show } from "/dom.js";
import { starters } from "/launch.js";
import { link, prompts, sessions, subscribe } from "/model.js";
import { sentence } from "/subject.js";
import { ago, folder, short } from "/words.js";
import { t } from "/language.js";

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
    : empty(t("Not connected."), t("Which sessions are running is not known until the hub can be reached again.")));
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
    if (running !== sessions.size) { running = sessions.size; drawEnded(); }
    const words = filter.value.trim().toLowerCase();
    const fits = (session) => !words || [session.label, session.tool, session.cwd, session.session_id].join(" ").toLowerCase().includes(words);
    const rank = (session) => (!session.open_prompt ? 2 : prompts.get(session.open_prompt)?.constraints.idle ? 1 : 0);
    const found = [...sessions.values()].reverse().filter(fits).sort((a, b) => rank(a) - rank(b));
    filter.hidden = sessions.size <= MANY;
    show(list, found.length ? found.map(item) : el("li", {}, sessions.size ? empty(t("None of them matches.")) : none()));
  }

  if (may("admin")) starters({ button, form });
  filter.addEventListener("input", draw);
  draw();
  return subscribe(() => { if (!drawing) { drawing = true; requestAnimationFrame(draw); } });
}
