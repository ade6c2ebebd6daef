// What was, and what holds: the history of prompts, the audit log, rules and grants, and figures.

import { answerLabel } from "/answering.js";
import { call, get, may } from "/api.js";
import { el, empty, PLAIN, show, svg, toast } from "/dom.js";
import { sessions, subscribe } from "/model.js";
import { asked, oneLine } from "/subject.js";
import { ago, by, folder, language, moment, short, stateName, t } from "/words.js";

const TONE = { resolved: "good", failed: "bad", expired: "warn" };
const outcomes = () => [["", t("All outcomes")], ["resolved", t("Taken")], ["expired", t("Expired")], ["withdrawn", t("No longer asked")], ["failed", t("Failed")], ["canceled", t("Left alone")], ["awaiting_reply", t("Open")]];
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

function paged(list, more, load, dateOf, make) {
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
  const more = el("button", { type: "button", hidden: true }, t("Show older entries"));
  const only = sessionId ? el("p", { cls: "only" }, t("Only for "), el("a", { href: `#session/${sessionId}` }, nameOf(sessionId)), el("a", { href: "#history" }, t("show all"))) : null;
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
      prompt.answer ? el("span", { cls: "gave" }, `“${answerLabel(prompt)}”`, el("small", {}, ` ${who}`)) : who ? el("small", {}, who) : null,
      el("span", { cls: `tag ${TONE[prompt.state] || ""}` }, stateName(prompt.state))), body);
  details.addEventListener("toggle", () => {
    if (!details.open || body.children.length) return;
    show(body, ...asked(prompt), prompt.answer ? el("p", { cls: "verdict" }, t("Answer: "), el("strong", {}, `“${answerLabel(prompt)}”`), t(" by {who}, {time}", { who, time: moment(prompt.answer.at) })) : null,
      el("p", { cls: "links" }, el("a", { href: `#session/${prompt.session_id}` }, t("View session")), el("a", { href: `#history/${prompt.session_id}` }, t("All prompts of this session")),
        el("a", { href: `#audit/${prompt.prompt_id}` }, t("In the audit log")), el("small", {}, `${folder(session.cwd)} · ${short(prompt.prompt_id)}`)));
  });
  return el("li", {}, details);
}

// The audit log: whether its chain is whole, and its entries as sentences, filtered, with the prompts and sessions they are about.

const kinds = () => [
  ["", t("Everything"), []],
  ["decisions", t("Decisions"), ["REPLY_RECEIVED", "REPLY_REFUSED", "SELF_REFUSED", "VOTE_CAST", "VOTE_DROPPED", "GRANT_ADDED", "GRANT_REVOKED", "POLICY_TRUSTED", "PROMPT_CANCELED"]],
  ["prompts", t("Prompts"), ["PROMPT_DETECTED", "PROMPT_ROUTED", "PROMPT_DELIVERED", "PROMPT_RESOLVED", "PROMPT_EXPIRED", "PROMPT_WITHDRAWN", "PROMPT_CANCELED", "PROMPT_FAILED", "REPLY_INJECTED"]],
  ["sessions", t("Sessions"), ["SESSION_START", "SESSION_RESUMED", "SESSION_LAUNCHED", "SESSION_STOPPED", "SESSION_RENAMED", "SESSION_END", "KEYS_TYPED", "WEB_TYPING"]],
  ["access", t("Access"), ["SOCKET_TAKEN", "TYPED_UNASKED", "WEB_LOGIN", "WEB_LOGOUT", "WEB_LOGOUT_ALL", "WEB_RENAMED", "WEB_PORT_TAKEN", "TOKEN_CREATED", "TOKEN_REVOKED", "CHANNEL_STRANGER", "CHANNEL_CONFLICT", "CHANNEL_RATE_LIMITED", "CHANNEL_UNAUTHORIZED"]],
  ["log", t("Hub and log"), ["HUB_START", "HUB_STOP", "CONFIG_RELOADED", "AUDIT_REPAIRED", "AUDIT_ADOPTED", "AUDIT_CUT", "STORE_CLEANED"]],
];
const BAD = new Set(["SELF_REFUSED", "SOCKET_TAKEN", "TYPED_UNASKED", "AUDIT_CUT", "AUDIT_REPAIRED", "AUDIT_ADOPTED", "CHANNEL_STRANGER", "CHANNEL_CONFLICT", "CHANNEL_UNAUTHORIZED", "WEB_PORT_TAKEN", "PROMPT_FAILED"]);
const says = () => ({
  SESSION_START: t("A session started"), SESSION_END: t("A session ended"), SESSION_LAUNCHED: t("A session was started remotely"), SESSION_RENAMED: t("A session was renamed"),
  PROMPT_DETECTED: t("Prompt detected"), PROMPT_ROUTED: t("Sent to channels"), PROMPT_DELIVERED: t("Shown"), REPLY_RECEIVED: t("Answered"), REPLY_REFUSED: t("An answer was refused"),
  SELF_REFUSED: t("A program tried to answer its own prompt"), SOCKET_TAKEN: t("Another program took the hub's socket"), TYPED_UNASKED: t("Typed without an answer from this hub"), REPLY_INJECTED: t("Typed"), PROMPT_RESOLVED: t("Taken"), PROMPT_EXPIRED: t("Expired"), PROMPT_WITHDRAWN: t("No longer asked"),
  PROMPT_FAILED: t("An answer failed"), WEB_LOGIN: t("A browser logged in"), WEB_LOGOUT: t("A browser was logged out"), WEB_TYPING: t("Typing was turned on or off"), KEYS_TYPED: t("Keys were typed"),
  HUB_START: t("The hub started"), HUB_STOP: t("The hub stopped"), GRANT_ADDED: t("A temporary permission was granted"), GRANT_REVOKED: t("A temporary permission was revoked"), CONFIG_RELOADED: t("The configuration was reloaded"),
  TOKEN_CREATED: t("A token was created"), TOKEN_REVOKED: t("A token was revoked"), VOTE_CAST: t("One of several people approved"), VOTE_DROPPED: t("A person who approved no longer has access"), SESSION_STOPPED: t("A session was asked to end"), SESSION_RESUMED: t("A session reconnected"),
});

export function auditView(main, page, promptId) {
  const state = el("div", { cls: "word", role: "status" }, t("Checking the hash chain …"));
  const kind = el("select", { "aria-label": t("Kind of entry") }, ...kinds().map(([value, name]) => el("option", { value }, name)));
  const list = el("ul", { cls: "list records" });
  const more = el("button", { type: "button", hidden: true }, t("Show older entries"));
  const only = promptId ? el("p", { cls: "only" }, t("Only for "), el("a", { href: `#prompt/${promptId}` }, t("prompt {name}", { name: short(promptId) })), el("a", { href: "#audit" }, t("show all"))) : null;
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Audit log")), kind), el("div", { cls: "stack" }, state, only, list, more));
  get("/audit/state").then((head) => {
    state.className = `word ${head.ok ? "good" : "bad"}`;
    state.textContent = `${head.ok ? t("The hash chain is intact") : t("THE HASH CHAIN IS BROKEN")}: ${t("{count} entries", { count: head.count })}, ${String(head.hash).replace("sha256:", "").slice(0, 12)}. ${head.ok ? "" : head.detail}`;
  }, (error) => { state.textContent = error.message; });
  const load = paged(list, more, async (before) => {
    const query = new URLSearchParams({ limit: "40", before: String(before?.seq || 0), events: kinds().find(([value]) => value === kind.value)[2].join(","), prompt: promptId || "" });
    return (await get(`/audit?${query}`)).entries;
  }, (record) => record.ts, auditEntry);
  kind.addEventListener("change", () => load());
  load();
  return () => {};
}

const reasons = () => ({
  answered_at_terminal: t("answered at the terminal"), moved_on: t("the tool moved on"), answered: t("answered"), asked_again: t("asked again"), exited: t("the tool has ended"), host_lost: t("the session has crashed"),
});

function auditEntry(record) {
  const { seq, event, hash, prev_hash: before, ts, ...rest } = record;
  const who = by(rest.decided_by || rest.identity || rest.by);
  const session = sessions.get(rest.session_id);
  const facts = [session ? session.label || session.tool : rest.tool, rest.channel, rest.value && `“${rest.value}”`, reasons()[rest.reason] || rest.reason].filter((word) => typeof word === "string" && word).join(" · ");
  const name = String(event);
  return el("li", {}, el("details", { cls: "item entry" },
    el("summary", {}, el("time", { datetime: ts, title: moment(ts) }, ts ? new Date(ts).toLocaleTimeString(language()) : ""), el("strong", { cls: BAD.has(name) ? "bad" : "" }, says()[name] || name),
      el("span", { cls: "peek" }, [who && t("by {who}", { who }), facts].filter(Boolean).join(" · ")), el("small", {}, `#${seq}`)),
    el("div", { cls: "about" }, el("p", { cls: "links" }, el("code", {}, name), rest.prompt_id ? el("a", { href: `#prompt/${rest.prompt_id}` }, t("The prompt")) : null,
      rest.prompt_id ? el("a", { href: `#audit/${rest.prompt_id}` }, t("All entries of this prompt")) : null, rest.session_id ? el("a", { href: `#session/${rest.session_id}` }, t("The session")) : null),
    el("pre", { cls: "term", tabindex: "0", "aria-label": t("Entry {count}", { count: seq }) }, JSON.stringify({ ...rest, prev_hash: before, hash }, null, 1)))));
}

// Rules, grants and what they did: one view that reads, and ends grants.

const VERDICT_TONE = { allow: "good", ask: "warn", deny: "bad" };

export function rulesView(main) {
  const grants = el("ul", { cls: "list", id: "grants" });
  const rules = el("ul", { cls: "list", id: "rules" });
  const did = el("ul", { cls: "list", id: "decisions" });
  const told = el("small", {});
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Rules"))), el("div", { cls: "stack" },
    el("section", { cls: "stack" }, el("h2", {}, t("Granted now")), grants),
    el("section", { cls: "stack" }, el("h2", {}, t("Your rules")), rules, el("small", {}, t("To edit them in policy.toml: "), el("code", {}, "atlasbridge policy edit"), ", ", el("code", {}, "atlasbridge policy suggest"))),
    el("section", { cls: "stack" }, el("h2", {}, t("Recent decisions")), did, told)));

  async function draw() {
    const found = await get("/rules").catch((error) => ({ error }));
    if (!grants.isConnected) return;
    if (found.error) { toast(found.error.message); return; }
    show(grants, found.grants.length ? found.grants.map((grant) => granted(grant, draw)) : el("li", {}, empty(t("No temporary permissions."), t("To grant one, choose “Allow for a while …” on a card."))));
    show(rules, found.rules.length ? found.rules.map(ruleItem) : el("li", {}, empty(t("There are no rules."), t("AtlasBridge asks you about everything. For suggestions of rules that answer for you, run: atlasbridge policy suggest"))));
    show(did, found.decisions.length ? found.decisions.map(decision) : el("li", {}, empty(t("No rule has answered anything yet."))));
    told.textContent = { digest: t("Channels get a daily summary of these decisions."), at_once: t("Channels are notified of each decision at once."), never: t("Channels are not notified of these decisions.") }[found.tell] || "";
  }

  let pause;
  const stop = subscribe((change) => { if (change.kind === "prompt") { clearTimeout(pause); pause = setTimeout(draw, 300); } });
  draw();
  return () => { clearTimeout(pause); stop(); };
}

function granted(grant, redraw) {
  const bounds = [grant.uses_left === null ? "" : t("1 time|{count} times", { count: grant.uses_left }), grant.seconds_left === null ? "" : t("{count} min left", { count: Math.max(0, Math.round(grant.seconds_left / 60)) })];
  const where = grant.session_id ? t("session {name}", { name: short(grant.session_id) }) : t("every session there");
  const end = el("button", { type: "button", cls: "refuse", on: { click: async () => {
    end.disabled = true;
    try { await call("DELETE", `/grants/${grant.grant_id}`); toast(t("Revoked. AtlasBridge asks you again.")); } catch (error) { toast(error.message); }
    redraw();
  } } }, t("Revoke"));
  return el("li", { cls: "item", "data-grant": grant.grant_id }, el("div", { cls: "row" },
    el("div", { cls: "grow" }, el("strong", {}, grant.allows), el("br"),
      el("small", { title: moment(grant.created_at) }, [grant.tool, folder(grant.folder), where, ...bounds, t("by {who}", { who: grant.by })].filter(Boolean).join(" · "))),
    may("answer") ? end : null));
}

function ruleItem(rule) {
  const people = rule.approvals > 1 ? t("{count} people must approve", { count: rule.approvals }) : "";
  const among = rule.person.length ? t("of {people}", { people: rule.person.join(", ") }) : "";
  return el("li", { cls: "item", "data-rule": rule.name },
    el("div", { cls: "row" }, el("strong", {}, rule.name), el("span", { cls: `tag ${VERDICT_TONE[rule.verdict]}` }, rule.verdict)),
    el("code", {}, rule.about),
    el("small", { title: rule.digest }, [...rule.only, people, among, rule.reason, rule.origin].filter(Boolean).join(" · ")));
}

function decision(entry) {
  return el("li", { cls: "item", "data-decision": entry.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, entry.source), el("span", { cls: `tag ${entry.allowed ? "good" : "bad"}` }, entry.allowed ? t("allowed") : t("refused"))),
    el("code", { cls: "what" }, entry.what),
    el("small", { title: `${moment(entry.at)} · ${entry.digest}` }, [ago(entry.at), entry.tool, folder(entry.folder), entry.reason].filter(Boolean).join(" · ")));
}

// Figures: how many, how fast, by whom.

export function figuresView(main) {
  const body = el("div", { cls: "stack" });
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Figures"))), body);
  get("/statistics").then((data) => {
    const days = data.days || [];
    const wait = data.answer_s || { count: 0, buckets: [] };
    const reported = data.reported || {};
    show(body, facts([[t("prompts"), days.reduce((sum, day) => sum + day.raised, 0)], [t("median wait"), span(wait.median)], [t("9 of 10 answered within"), span(wait.p90)],
      [t("false alarms reported"), reported.not_a_prompt || 0], [t("missed prompts reported"), reported.missed || 0]]),
    el("div", { cls: "plots" },
      bars(t("Prompts per day"), days.map((day) => [dayName(day.day), day.raised, day.answered]), t("raised, of which answered")),
      bars(t("Time to answer"), (wait.buckets || []).map(([upper, count]) => [upper === null ? t("more") : `≤ ${span(upper)}`, count]), t("answers")),
      ranks(t("Who answered"), Object.fromEntries(Object.entries(data.answered_by || {}).map(([name, count]) => [by(name) || t("nobody"), count]))), ranks(t("Prompts by type"), Object.fromEntries(Object.entries(data.types || {}).map(([type, count]) => [typeName(type), count])))));
  }, (error) => show(body, empty(error.message)));
  return () => {};
}

const span = (seconds) => (seconds === undefined || seconds === null ? "–" : seconds < 90 ? t("{count} s", { count: Math.round(seconds) }) : seconds < 5400 ? t("{count} min", { count: Math.round(seconds / 60) }) : t("{count} h", { count: Math.round(seconds / 3600) }));

const dayName = (day) => new Date(`${day}T00:00:00Z`).toLocaleDateString(language(), { month: "numeric", day: "numeric", timeZone: "UTC" });
const typeName = (type) => ({ yes_no: t("Yes / No question"), confirm_enter: t("Press Enter"), multiple_choice: t("Multiple choice"), free_text: t("Text input"), unknown: t("Unknown kind of input") })[type] || type;

const facts = (rows) => el("dl", { cls: "facts" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));

function plot(title, drawing, rows) {
  return el("figure", { cls: "panel plot" }, el("figcaption", {}, title), rows.length ? drawing : el("small", {}, t("Nothing yet.")),
    rows.length ? el("details", {}, el("summary", {}, t("As a table")), el("table", {}, el("tbody", {},
      ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell)))))))) : null);
}

function bars(title, rows, about) {
  const [width, height] = [420, 150];
  const top = Math.max(1, ...rows.map((row) => row[1]));
  const step = width / Math.max(1, rows.length);
  const every = Math.ceil(rows.length / 7);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": `${title}: ${about}` },
    svg("line", { cls: "axis", x1: 0, x2: width, y1: height, y2: height }),
    svg("text", { x: 0, y: 12 }, String(top)),
    ...rows.flatMap(([name, all, part], at) => {
      const bar = (value, cls) => svg("rect", { cls, x: (at * step + step * 0.14).toFixed(1), width: (step * 0.72).toFixed(1), rx: 3,
        y: (height - (value / top) * (height - 16)).toFixed(1), height: ((value / top) * (height - 16)).toFixed(1) }, svg("title", {}, `${name}: ${value}`));
      return [bar(all, part === undefined ? "bar" : "bar part"), part === undefined ? null : bar(part, "bar"),
        at % every === 0 ? svg("text", { x: (at * step + step / 2).toFixed(1), y: height + 16, "text-anchor": "middle" }, name) : null];
    }));
  return plot(title, drawing, rows);
}

function ranks(title, counts) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const top = Math.max(1, ...rows.map((row) => row[1]));
  const drawing = svg("svg", { viewBox: `0 0 420 ${rows.length * 38}`, role: "img", "aria-label": title },
    ...rows.flatMap(([name, count], at) => [
      svg("text", { x: 0, y: at * 38 + 12 }, name.slice(0, 48)), svg("text", { x: 420, y: at * 38 + 12, "text-anchor": "end" }, String(count)),
      svg("rect", { cls: "bar", x: 0, y: at * 38 + 18, height: 8, rx: 4, width: ((count / top) * 420).toFixed(1) })]));
  return plot(title, drawing, rows);
}
