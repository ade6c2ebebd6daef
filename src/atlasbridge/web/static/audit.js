// The audit log: whether its chain is whole, and its entries as sentences, filtered, with the prompts and sessions they are about.

import { get } from "/api.js";
import { el, show } from "/dom.js";
import { sessions } from "/model.js";
import { paged } from "/records.js";
import { by, moment, short } from "/words.js";
import { language, t } from "/language.js";

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
  SESSION_START: t("A session began"), SESSION_END: t("A session ended"), SESSION_LAUNCHED: t("A session was started remotely"), SESSION_RENAMED: t("A session got another name"),
  PROMPT_DETECTED: t("It asked"), PROMPT_ROUTED: t("Sent to the channels"), PROMPT_DELIVERED: t("Shown"), REPLY_RECEIVED: t("Answered"), REPLY_REFUSED: t("An answer was refused"),
  SELF_REFUSED: t("A program tried to decide for itself"), SOCKET_TAKEN: t("Another program took the hub's socket"), TYPED_UNASKED: t("Typed without an answer of this hub"), REPLY_INJECTED: t("Typed"), PROMPT_RESOLVED: t("Taken"), PROMPT_EXPIRED: t("Its time was over"), PROMPT_WITHDRAWN: t("No longer asked"),
  PROMPT_FAILED: t("It could not be answered"), WEB_LOGIN: t("A browser was logged in"), WEB_LOGOUT: t("A browser was logged out"), WEB_TYPING: t("Typing was switched"), KEYS_TYPED: t("Keys were typed"),
  HUB_START: t("The hub began"), HUB_STOP: t("The hub ended"), GRANT_ADDED: t("Something was allowed for a while"), GRANT_REVOKED: t("A permission was taken back"), CONFIG_RELOADED: t("The configuration was read again"),
  TOKEN_CREATED: t("A token was made"), TOKEN_REVOKED: t("A token was revoked"), VOTE_CAST: t("One of several agreed"), VOTE_DROPPED: t("A person who agreed has no access any more"), SESSION_STOPPED: t("A session was told to end"), SESSION_RESUMED: t("A session reported again"),
});

export function auditView(main, page, promptId) {
  const state = el("div", { cls: "word", role: "status" }, t("Checking the chain…"));
  const kind = el("select", { "aria-label": t("Kind of entry") }, ...kinds().map(([value, name]) => el("option", { value }, name)));
  const list = el("ul", { cls: "list records" });
  const more = el("button", { type: "button", hidden: true }, t("Show older ones"));
  const only = promptId ? el("p", { cls: "only" }, t("Only of "), el("a", { href: `#prompt/${promptId}` }, t("prompt {name}", { name: short(promptId) })), el("a", { href: "#audit" }, t("show all"))) : null;
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Audit log")), kind), el("div", { cls: "stack" }, state, only, list, more));
  get("/audit/state").then((head) => {
    state.className = `word ${head.ok ? "good" : "bad"}`;
    state.textContent = `${head.ok ? t("The chain is whole") : t("THE CHAIN IS BROKEN")}: ${t("{count} entries", { count: head.count })}, ${String(head.hash).replace("sha256:", "").slice(0, 12)}. ${head.ok ? "" : head.detail}`;
  }, (error) => { state.textContent = error.message; });
  const load = paged(list, more, async (before) => {
    const query = new URLSearchParams({ limit: "40", before: String(before?.seq || 0), events: kinds().find(([value]) => value === kind.value)[2].join(","), prompt: promptId || "" });
    return (await get(`/audit?${query}`)).entries;
  }, (record) => record.ts, auditEntry);
  kind.addEventListener("change", () => load());
  load();
  return () => {};
}

function auditEntry(record) {
  const { seq, event, hash, prev_hash: before, ts, ...rest } = record;
  const who = by(rest.decided_by || rest.identity || rest.by);
  const session = sessions.get(rest.session_id);
  const facts = [session ? session.label || session.tool : rest.tool, rest.channel, rest.value && `“${rest.value}”`, rest.reason].filter((word) => typeof word === "string" && word).join(" · ");
  const name = String(event);
  return el("li", {}, el("details", { cls: "item entry" },
    el("summary", {}, el("time", { datetime: ts, title: moment(ts) }, ts ? new Date(ts).toLocaleTimeString(language()) : ""), el("strong", { cls: BAD.has(name) ? "bad" : "" }, says()[name] || name),
      el("span", { cls: "peek" }, [who && t("by {who}", { who }), facts].filter(Boolean).join(" · ")), el("small", {}, `#${seq}`)),
    el("div", { cls: "about" }, el("p", { cls: "links" }, el("code", {}, name), rest.prompt_id ? el("a", { href: `#prompt/${rest.prompt_id}` }, t("The prompt")) : null,
      rest.prompt_id ? el("a", { href: `#audit/${rest.prompt_id}` }, t("All of this prompt")) : null, rest.session_id ? el("a", { href: `#session/${rest.session_id}` }, t("The session")) : null),
    el("pre", { cls: "term", tabindex: "0", "aria-label": t("Entry {count}", { count: seq }) }, JSON.stringify({ ...rest, prev_hash: before, hash }, null, 1)))));
}
