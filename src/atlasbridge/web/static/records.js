// What was: the history of prompts and the audit log, filtered, and linked with each other.

import { get } from "/api.js";
import { PLAIN, el, empty, show, toast } from "/dom.js";
import { sessions } from "/model.js";
import { asked, oneLine } from "/subject.js";
import { by, folder, moment, short, stateName } from "/words.js";
import { language, t } from "/language.js";

const TONE = { resolved: "good", failed: "bad", expired: "warn" };
const outcomes = () => [["", t("Every outcome")], ["resolved", t("Taken")], ["expired", t("Expired")], ["withdrawn", t("No longer asked")], ["failed", t("Failed")], ["canceled", t("Left alone")], ["awaiting_reply", t("Open")]];
const PAGE = 40;

const day = (text) => new Date(text).toLocaleDateString(language(), { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const hour = (text) => new Date(text).toLocaleTimeString(language());

// Adds entries under the heading of their day.
function byDay(list, entries, dateOf, make) {
  for (const entry of entries) {
    const name = day(dateOf(entry));
    if (list.lastDay !== name) { list.append(el("li", { cls: "day" }, el("h2", {}, name))); list.lastDay = name; }
    list.append(make(entry));
  }
}

export function paged(list, more, load, dateOf, make) {
  let turn = 0;
  return async function turnPage(before = null) {
    const mine = ++turn;
    let entries;
    try { entries = await load(before); } catch (error) { toast(error.message); entries = []; }
    if (mine !== turn) return;
    if (!before) { show(list); list.lastDay = ""; if (!entries.length) list.append(el("li", {}, empty(t("Nothing found.")))); }
    byDay(list, entries, dateOf, make);
    more.hidden = entries.length < PAGE;
    more.onclick = () => turnPage(entries.at(-1));
  };
}

export function historyView(main, page, sessionId) {
  const search = el("input", { type: "search", placeholder: t("Search questions, tools, folders, people"), "aria-label": t("Search the history"), ...PLAIN });
  const state = el("select", { "aria-label": t("Outcome") }, ...outcomes().map(([value, name]) => el("option", { value }, name)));
  const list = el("ul", { cls: "list records" });
  const more = el("button", { type: "button", hidden: true }, t("Show older ones"));
  const only = sessionId ? el("p", { cls: "only" }, t("Only of "), el("a", { href: `#session/${sessionId}` }, nameOf(sessionId)), el("a", { href: "#history" }, t("show all"))) : null;
  show(main, el("div", { cls: "head" }, el("h1", {}, t("History"))), el("div", { cls: "stack" }, el("div", { cls: "filters" }, search, state), only, list, more));
  const load = paged(list, more, async (before) => {
    const query = new URLSearchParams({ search: search.value.slice(0, 200), limit: String(PAGE), before: before?.prompt_id || "", session: sessionId || "", state: state.value });
    return (await get(`/history?${query}`)).prompts;
  }, (prompt) => prompt.created_at, entry);
  let pause;
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => load(), 200); });
  state.addEventListener("change", () => load());
  load();
  return () => clearTimeout(pause);
}

const nameOf = (id) => sessions.get(id)?.label || sessions.get(id)?.tool || t("session {name}", { name: short(id) });

function entry(prompt) {
  const session = prompt.session || {};
  const who = by(prompt.answer?.by || prompt.decided_by);
  const line = oneLine(prompt);
  const body = el("div", { cls: "about" });
  const details = el("details", { cls: "item entry", "data-prompt": prompt.prompt_id },
    el("summary", {}, el("time", { datetime: prompt.created_at, title: moment(prompt.created_at) }, hour(prompt.created_at)),
      el("strong", {}, session.label || session.tool || t("a program")), el("span", { cls: `peek k-${line.kind}` }, line.text),
      prompt.answer ? el("span", { cls: "gave" }, `“${prompt.answer.label}”`, el("small", {}, ` ${who}`)) : who ? el("small", {}, who) : null,
      el("span", { cls: `tag ${TONE[prompt.state] || ""}` }, stateName(prompt.state))), body);
  details.addEventListener("toggle", () => {
    if (!details.open || body.children.length) return;
    show(body, ...asked(prompt), prompt.answer ? el("p", { cls: "verdict" }, t("Answer: "), el("strong", {}, `“${prompt.answer.label}”`), t(" by {who}, {time}", { who, time: moment(prompt.answer.at) })) : null,
      el("p", { cls: "links" }, el("a", { href: `#session/${prompt.session_id}` }, t("Its session")), el("a", { href: `#history/${prompt.session_id}` }, t("All of this session")),
        el("a", { href: `#audit/${prompt.prompt_id}` }, t("In the audit log")), el("small", {}, `${folder(session.cwd)} · ${short(prompt.prompt_id)}`)));
  });
  return el("li", {}, details);
}
