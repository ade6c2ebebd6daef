// Rules, grants and what they did: one view that reads, and ends grants.

import { call, get, may } from "/api.js";
import { el, empty, show, toast } from "/dom.js";
import { subscribe } from "/model.js";
import { ago, folder, moment, short } from "/words.js";
import { t } from "/language.js";

const TONE = { allow: "good", ask: "warn", deny: "bad" };

export function rulesView(main) {
  const grants = el("ul", { cls: "list", id: "grants" });
  const rules = el("ul", { cls: "list", id: "rules" });
  const did = el("ul", { cls: "list", id: "decisions" });
  const told = el("small", {});
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Rules"))), el("div", { cls: "stack" },
    el("section", { cls: "stack" }, el("h2", {}, t("Granted now")), grants),
    el("section", { cls: "stack" }, el("h2", {}, t("Your rules")), rules, el("small", {}, t("They are in policy.toml: "), el("code", {}, "atlasbridge policy edit"), ", ", el("code", {}, "atlasbridge policy suggest"))),
    el("section", { cls: "stack" }, el("h2", {}, t("What they did")), did, told)));

  async function draw() {
    const found = await get("/rules").catch((error) => ({ error }));
    if (!grants.isConnected) return;
    if (found.error) { toast(found.error.message); return; }
    show(grants, found.grants.length ? found.grants.map((grant) => granted(grant, draw)) : el("li", {}, empty(t("Nothing is granted."), t("A card offers to allow what it asks for a while."))));
    show(rules, found.rules.length ? found.rules.map(ruleItem) : el("li", {}, empty(t("There are no rules."), t("Everything is asked. Rules that answer for you are yours to write: atlasbridge policy suggest"))));
    show(did, found.decisions.length ? found.decisions.map(decision) : el("li", {}, empty(t("No rule has answered anything yet."))));
    told.textContent = { digest: t("Channels hear of it once a day."), at_once: t("Channels hear of each at once."), never: t("Channels do not hear of it.") }[found.tell] || "";
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
    try { await call("DELETE", `/grants/${grant.grant_id}`); toast(t("Revoked: it is asked again.")); } catch (error) { toast(error.message); }
    redraw();
  } } }, t("Revoke"));
  return el("li", { cls: "item", "data-grant": grant.grant_id }, el("div", { cls: "row" },
    el("div", { cls: "grow" }, el("strong", {}, grant.allows), el("br"),
      el("small", { title: moment(grant.created_at) }, [grant.tool, folder(grant.folder), where, ...bounds, t("by {who}", { who: grant.by })].filter(Boolean).join(" · "))),
    may("answer") ? end : null));
}

function ruleItem(rule) {
  const people = rule.approvals > 1 ? t("{count} people must agree", { count: rule.approvals }) : "";
  const among = rule.person.length ? t("of {people}", { people: rule.person.join(", ") }) : "";
  return el("li", { cls: "item", "data-rule": rule.name },
    el("div", { cls: "row" }, el("strong", {}, rule.name), el("span", { cls: `tag ${TONE[rule.verdict]}` }, rule.verdict)),
    el("code", {}, rule.about),
    el("small", { title: rule.digest }, [...rule.only, people, among, rule.reason, rule.origin].filter(Boolean).join(" · ")));
}

function decision(entry) {
  return el("li", { cls: "item", "data-decision": entry.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, entry.source), el("span", { cls: `tag ${entry.allowed ? "good" : "bad"}` }, entry.allowed ? t("allowed") : t("refused"))),
    el("code", { cls: "what" }, entry.what),
    el("small", { title: `${moment(entry.at)} · ${entry.digest}` }, [ago(entry.at), entry.tool, folder(entry.folder), entry.reason].filter(Boolean).join(" · ")));
}
