// The machines of the fleet, and what was decided for them.

import { get } from "/api.js";
import { PLAIN, el, empty, show, toast } from "/dom.js";
import { ago, moment, t } from "/words.js";
import { subscribe } from "/model.js";

// On a phone each row is a list of its own: then a cell says what it is.
function table(id, heads) {
  const body = el("tbody");
  const row = (cells, bad) => el("tr", { cls: bad ? "bad" : "" }, ...cells.map((cell, at) => el("td", { "data-column": heads[at] }, String(cell ?? ""))));
  const node = el("div", { cls: "scroll", tabindex: "0" }, el("table", { id }, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", {}, head)))), body));
  return { body, row, node };
}

export function machinesView(main) {
  const machines = table("machines", [t("Name"), t("Open"), t("Last seen"), t("Version"), t("Rules"), t("Audit log")]);
  const decisions = table("decisions", [t("When"), t("Machine"), t("Question"), t("Answer"), t("By"), t("Outcome")]);
  const person = el("input", { type: "search", id: "by", placeholder: t("Everyone"), "aria-label": t("Only decisions by this person"), ...PLAIN });
  const [none, undecided] = [el("div"), el("div")];
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Machines")), el("a", { href: "/admin.html" }, t("Administration"))), el("div", { cls: "stack" }, none, machines.node,
    el("h2", {}, t("Decisions")), person, undecided, decisions.node));

  async function draw() {
    try {
      const [{ machines: known }, { decisions: made }] = await Promise.all([get("/machines"), get(`/decisions?person=${encodeURIComponent(person.value.trim())}`)]);
      show(none, known.length ? [] : [empty(t("No machine has joined."), t("On a machine, run: atlasbridge fleet join INVITATION"))]);
      show(machines.body, known.map((one) => machines.row([one.name, one.open_prompts, one.connected ? t("connected") : one.seen_at ? ago(one.seen_at) : t("never"), one.version,
        one.rules_fault || one.rules.slice(0, 15), one.log_fault || t("verified")], one.log_fault || one.rules_fault)));
      show(undecided, made.length ? [] : [el("small", {}, t("Nothing yet."))]);
      decisions.node.hidden = !made.length;
      show(decisions.body, made.map((one) => decisions.row([moment(one.made_at), one.machine, one.excerpt, one.value, one.person, one.message || t("under way")], one.ok === false)));
    } catch (error) { toast(error.message); }
  }

  let pause;
  const soon = () => { clearTimeout(pause); pause = setTimeout(draw, 300); };
  person.addEventListener("input", soon);
  const stop = subscribe(soon);
  draw();
  return () => { clearTimeout(pause); stop(); };
}
