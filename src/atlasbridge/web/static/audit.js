// The audit log: whether its chain is whole, and its entries as sentences, filtered, with the prompts and sessions they are about.

import { get } from "/api.js";
import { el, show } from "/dom.js";
import { sessions } from "/model.js";
import { paged } from "/records.js";
import { by, moment, short } from "/words.js";

const KINDS = [
  ["", "Everything", []],
  ["decisions", "Decisions", ["REPLY_RECEIVED", "REPLY_REFUSED", "SELF_REFUSED", "VOTE_CAST", "VOTE_DROPPED", "GRANT_ADDED", "GRANT_REVOKED", "POLICY_TRUSTED", "PROMPT_CANCELED"]],
  ["prompts", "Prompts", ["PROMPT_DETECTED", "PROMPT_ROUTED", "PROMPT_DELIVERED", "PROMPT_RESOLVED", "PROMPT_EXPIRED", "PROMPT_WITHDRAWN", "PROMPT_CANCELED", "PROMPT_FAILED", "REPLY_INJECTED"]],
  ["sessions", "Sessions", ["SESSION_START", "SESSION_RESUMED", "SESSION_LAUNCHED", "SESSION_STOPPED", "SESSION_RENAMED", "SESSION_END", "KEYS_TYPED", "WEB_TYPING"]],
  ["access", "Access", ["SOCKET_TAKEN", "TYPED_UNASKED", "WEB_LOGIN", "WEB_LOGOUT", "WEB_LOGOUT_ALL", "WEB_RENAMED", "WEB_PORT_TAKEN", "TOKEN_CREATED", "TOKEN_REVOKED", "CHANNEL_STRANGER", "CHANNEL_CONFLICT", "CHANNEL_RATE_LIMITED", "CHANNEL_UNAUTHORIZED"]],
  ["log", "Hub and log", ["HUB_START", "HUB_STOP", "CONFIG_RELOADED", "AUDIT_REPAIRED", "AUDIT_ADOPTED", "AUDIT_CUT", "STORE_CLEANED"]],
];
const BAD = new Set(["SELF_REFUSED", "SOCKET_TAKEN", "TYPED_UNASKED", "AUDIT_CUT", "AUDIT_REPAIRED", "AUDIT_ADOPTED", "CHANNEL_STRANGER", "CHANNEL_CONFLICT", "CHANNEL_UNAUTHORIZED", "WEB_PORT_TAKEN", "PROMPT_FAILED"]);
const SAYS = {
  SESSION_START: "A session began", SESSION_END: "A session ended", SESSION_LAUNCHED: "A session was started from afar", SESSION_RENAMED: "A session got another name",
  PROMPT_DETECTED: "It asked", PROMPT_ROUTED: "Handed to the channels", PROMPT_DELIVERED: "Shown", REPLY_RECEIVED: "Answered", REPLY_REFUSED: "An answer was refused",
  SELF_REFUSED: "A program tried to decide for itself", SOCKET_TAKEN: "Another program took the hub's socket", TYPED_UNASKED: "Typed without an answer of this hub", REPLY_INJECTED: "Typed", PROMPT_RESOLVED: "Taken", PROMPT_EXPIRED: "Its time was over", PROMPT_WITHDRAWN: "No longer asked",
  PROMPT_FAILED: "It could not be answered", WEB_LOGIN: "A browser was let in", WEB_LOGOUT: "A browser was logged out", WEB_TYPING: "Typing was switched", KEYS_TYPED: "Keys were typed",
  HUB_START: "The hub began", HUB_STOP: "The hub ended", GRANT_ADDED: "Something was allowed for a while", GRANT_REVOKED: "A permission was taken back", CONFIG_RELOADED: "The configuration was read again",
  TOKEN_CREATED: "A token was made", TOKEN_REVOKED: "A token was revoked", VOTE_CAST: "One of several agreed", VOTE_DROPPED: "Who agreed is not let in any more", SESSION_STOPPED: "A session was told to end", SESSION_RESUMED: "A session reported again",
};

export function auditView(main, page, promptId) {
  const state = el("div", { cls: "word", role: "status" }, "Checking the chain…");
  const kind = el("select", { "aria-label": "Kind of entry" }, ...KINDS.map(([value, name]) => el("option", { value }, name)));
  const list = el("ul", { cls: "list records" });
  const more = el("button", { type: "button", hidden: true }, "Show older ones");
  const only = promptId ? el("p", { cls: "only" }, "Only of ", el("a", { href: `#prompt/${promptId}` }, `prompt ${short(promptId)}`), el("a", { href: "#audit" }, "show all")) : null;
  show(main, el("div", { cls: "head" }, el("h1", {}, "Audit log"), kind), el("div", { cls: "stack" }, state, only, list, more));
  get("/audit/state").then((head) => {
    state.className = `word ${head.ok ? "good" : "bad"}`;
    state.textContent = `${head.ok ? "The chain is whole" : "THE CHAIN IS BROKEN"}: ${head.count} entries, head ${String(head.hash).replace("sha256:", "").slice(0, 12)}. ${head.ok ? "" : head.detail}`;
  }, (error) => { state.textContent = error.message; });
  const load = paged(list, more, async (before) => {
    const query = new URLSearchParams({ limit: "40", before: String(before?.seq || 0), events: KINDS.find(([value]) => value === kind.value)[2].join(","), prompt: promptId || "" });
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
    el("summary", {}, el("time", { datetime: ts, title: moment(ts) }, ts ? new Date(ts).toLocaleTimeString() : ""), el("strong", { cls: BAD.has(name) ? "bad" : "" }, SAYS[name] || name),
      el("span", { cls: "peek" }, [who && `by ${who}`, facts].filter(Boolean).join(" · ")), el("small", {}, `#${seq}`)),
    el("div", { cls: "about" }, el("p", { cls: "links" }, el("code", {}, name), rest.prompt_id ? el("a", { href: `#prompt/${rest.prompt_id}` }, "The prompt") : null,
      rest.prompt_id ? el("a", { href: `#audit/${rest.prompt_id}` }, "All of this prompt") : null, rest.session_id ? el("a", { href: `#session/${rest.session_id}` }, "The session") : null),
    el("pre", { cls: "term", tabindex: "0", "aria-label": `Entry ${seq}` }, JSON.stringify({ ...rest, prev_hash: before, hash }, null, 1)))));
}
