// Many prompts as a compact list: grouped by what they want, filtered, walked by keys, several marked and answered at once.

import { may } from "/api.js";
import { bySoonest, canBeMarked, give, isPermission, labelOf, pick, ways } from "/answering.js";
import { PLAIN, arrange, el, show, speak, whole } from "/dom.js";
import { clock, folder, left, nameOf, t } from "/words.js";
import { prompts } from "/model.js";
import { effectWords, oneLine, warningOf } from "/subject.js";

const groups = () => [["permission", t("Permissions")], ["question", t("Questions")], ["idle", t("Finished")], ["unclear", t("Not clear")]];
const FACES = { command: "$", edit: "±", fetch: "↗", tool: "⚙", secret: "•••", question: "?", idle: "✓", unclear: "…" };
const known = new WeakMap(); // prompt -> what its row says

function about(prompt) {
  if (!known.has(prompt)) {
    const line = oneLine(prompt);
    const group = ["idle", "unclear"].includes(line.kind) ? line.kind : line.kind !== "secret" && isPermission(prompt) ? "permission" : "question";
    const session = prompt.session || {};
    const text = [prompt.question, prompt.excerpt, session.tool, session.label, session.cwd, prompt.subject?.text, line.text].join(" ").toLowerCase();
    known.set(prompt, { line, group, text });
  }
  return known.get(prompt);
}

// What all of them can be given: each its own plain yes, a choice that is called the same everywhere, and the one way in which
// each refuses.
function shared(marked) {
  const plain = (prompt) => ways(prompt).filter((choice) => !choice.always && !choice.words && !choice.refuses);
  const no = (prompt) => ways(prompt).filter((choice) => choice.refuses);
  const picks = [];
  if (marked.every((prompt) => pick("y", prompt))) picks.push({ said: t("Yes"), of: (prompt) => pick("y", prompt) });
  for (const choice of plain(marked[0])) {
    const { label } = choice;
    if (picks.some((known) => known.of(marked[0]).label === label)) continue;
    if (marked.every((prompt) => plain(prompt).some((other) => other.label === label))) picks.push({ said: labelOf(choice), of: (prompt) => plain(prompt).find((other) => other.label === label) });
  }
  if (marked.every((prompt) => no(prompt).length === 1)) picks.push({ said: t("Refuse"), refuses: true, of: (prompt) => no(prompt)[0] });
  return picks;
}

// Coarse, so that a long list rests: only the last minute is counted down.
const aboutTime = (until) => (left(until) < 60 ? clock(left(until)) : left(until) < 5940 ? t("{count} min", { count: Math.round(left(until) / 60) }) : clock(left(until)));

function makeGroup(title) {
  const [list, count] = [el("ul"), el("span")];
  return { list, count, node: el("section", { "aria-label": title }, el("h3", {}, title, count), list) };
}

export class Inbox {
  constructor(redraw) {
    this.redraw = redraw;
    this.only = "";
    this.marked = new Set();
    this.rows = new Map(); // prompt id -> its row
    this.list = el("div", { cls: "inbox" });
    this.groups = new Map(groups().map(([name, title]) => [name, makeGroup(title)]));
    this.none = el("p", { cls: "soft none" }, t("No matches."));
    this.chips = el("div", { cls: "chips", role: "group", "aria-label": t("Kinds of prompts") });
    this.filter = el("input", { type: "search", placeholder: t("Filter"), "aria-label": t("Filter the list"), ...PLAIN });
    this.filter.addEventListener("input", redraw);
    this.bar = el("div", { cls: "batch", role: "group", "aria-label": t("Selected prompts"), hidden: true });
    this.box = el("dialog", { cls: "panel", "aria-label": t("Answer several") });
    this.node = el("section", { cls: "side", "aria-label": t("Open prompts"), hidden: true },
      el("div", { cls: "side-head" }, el("div", { cls: "row" }, el("h2", {}, t("Waiting")), this.filter), this.chips), this.list, this.bar, this.box);
  }

  get ids() { return [...this.list.querySelectorAll("[data-row]")].map((row) => row.dataset.row); }

  point(current) {
    if (this.current === current) return;
    for (const [id, on] of [[this.current, false], [current, true]]) {
      const item = this.rows.get(id)?.item;
      item?.classList.toggle("here", on);
      if (on) item?.querySelector(".line").setAttribute("aria-current", "true"); else item?.querySelector(".line").removeAttribute("aria-current");
    }
    this.current = current;
  }

  clear() {
    this.marked.clear();
    this.rows.clear();
    this.current = "";
    for (const group of this.groups.values()) show(group.list);
    show(this.list);
    this.drawBar();
  }

  draw() {
    const words = this.filter.value.trim().toLowerCase();
    const all = [...prompts.values()].sort(bySoonest);
    const counts = Object.fromEntries(groups().map(([name]) => [name, all.filter((prompt) => about(prompt).group === name).length]));
    if (!counts[this.only]) this.only = "";
    const found = all.filter((prompt) => (!words || about(prompt).text.includes(words)) && (!this.only || about(prompt).group === this.only));
    for (const id of [...this.marked]) if (!prompts.has(id)) this.marked.delete(id);
    for (const id of [...this.rows.keys()]) if (!prompts.has(id)) this.rows.delete(id);
    this.drawChips(counts, all.length);
    const shown = [];
    for (const [name, group] of this.groups) {
      const own = found.filter((prompt) => about(prompt).group === name);
      arrange(group.list, own.map((prompt) => this.row(prompt)));
      group.count.textContent = String(own.length);
      if (own.length) shown.push([own[0], group.node]);
    }
    shown.sort(([one], [other]) => bySoonest(one, other)); // the first row is the next one to answer
    arrange(this.list, shown.length ? shown.map(([, node]) => node) : [this.none]);
    this.drawBar();
  }

  drawChips(counts, all) {
    const chip = (name, face, count) => el("button", { type: "button", "aria-pressed": String(this.only === name), on: { click: () => { this.only = name; this.redraw(); } } }, face, el("b", {}, String(count)));
    const kinds = groups().filter(([name]) => counts[name]);
    show(this.chips, kinds.length > 1 ? [chip("", t("All"), all), ...kinds.map(([name, title]) => chip(name, title, counts[name]))] : []);
    this.chips.hidden = kinds.length < 2;
  }

  row(prompt) {
    const id = prompt.prompt_id;
    const kept = this.rows.get(id);
    const item = kept?.prompt === prompt ? kept.item : this.makeRow(prompt);
    if (kept && kept.item !== item && this.current === id) this.current = "";
    this.rows.set(id, { prompt, item });
    const mark = item.querySelector(".tick input");
    if (mark) mark.checked = this.marked.has(id);
    return item;
  }

  makeRow(prompt) {
    const session = prompt.session || {};
    const { line } = about(prompt);
    const name = nameOf(prompt);
    const mark = may("answer") && canBeMarked(prompt) ? el("input", { type: "checkbox", "aria-label": t("Select {name}", { name }), on: { change: () => this.toggle(prompt.prompt_id) } }) : null;
    return el("li", { cls: `k-${line.kind}` }, el("label", { cls: "tick" }, mark, mark ? null : el("span", { "aria-hidden": "true" })),
      el("a", { cls: "line", href: `#prompt/${prompt.prompt_id}`, "data-row": prompt.prompt_id },
        el("span", { cls: "line-who" }, el("strong", {}, name), el("small", {}, [prompt.machine, session.label ? session.tool : "", folder(session.cwd)].filter(Boolean).join(" · "))),
        el("small", { cls: `line-left ${left(prompt.expires_at) < 60 ? "short" : ""}`, "data-until": prompt.expires_at }, aboutTime(prompt.expires_at)),
        el("span", { cls: "line-asks" }, el("i", { "aria-hidden": "true" }, FACES[line.kind] || "?"), line.text, line.more ? el("small", {}, ` ${line.more}`) : null),
        line.kind === "command" && effectWords(prompt).length ? el("small", { cls: "line-effects" }, effectWords(prompt).join(" · ")) : null));
  }

  toggle(id) {
    const row = this.rows.get(id);
    if (!row || !may("answer") || !canBeMarked(row.prompt)) return;
    if (this.marked.has(id)) this.marked.delete(id); else this.marked.add(id);
    row.item.querySelector(".tick input").checked = this.marked.has(id);
    this.drawBar();
  }

  drawBar() {
    const marked = [...this.marked].map((id) => prompts.get(id)).filter(Boolean);
    this.bar.hidden = !marked.length;
    if (!marked.length) return;
    const picks = shared(marked);
    show(this.bar, el("strong", {}, t("{count} selected", { count: marked.length })),
      picks.length ? picks.map((chosen) => el("button", { type: "button", cls: chosen.refuses ? "refuse" : "", on: { click: () => this.confirm(marked, chosen) } }, chosen.refuses ? t("Refuse all") : t("{label} to all", { label: chosen.said })))
        : el("small", {}, t("These prompts have no answer in common.")),
      el("button", { type: "button", cls: "quiet", on: { click: () => { this.marked.clear(); this.redraw(); } } }, t("Clear selection")));
  }

  // Each is shown once more with the answer that it would get; each is then decided and recorded for itself.
  confirm(marked, chosen) {
    const close = () => this.box.close();
    const send = el("button", { type: "button", cls: chosen.refuses ? "refuse" : "main", on: { click: () => { close(); this.send(marked, chosen); } } }, t("Answer these {count}", { count: marked.length }));
    show(this.box, el("h2", {}, chosen.refuses ? t("Refuse {count}?", { count: marked.length }) : t("“{label}” to {count}?", { label: chosen.said, count: marked.length })),
      el("ul", { cls: "sure" }, ...marked.map((prompt) => el("li", {}, el("strong", {}, nameOf(prompt)),
        whole(el("pre", { tabindex: "0" }, prompt.subject?.text || prompt.question || prompt.excerpt)), effectWords(prompt).length ? el("p", { cls: "effects" }, effectWords(prompt).join(" · ")) : null, warningOf(prompt), el("small", {}, t("Answer: “{label}”", { label: labelOf(chosen.of(prompt)) }))))),
      el("div", { cls: "row end" }, el("button", { type: "button", on: { click: close } }, t("Cancel")), send));
    this.box.showModal();
  }

  async send(marked, chosen) {
    this.marked.clear();
    const done = await Promise.all(marked.map((prompt) => (prompts.has(prompt.prompt_id) ? give(prompt, { value: chosen.of(prompt).value, label: labelOf(chosen.of(prompt)) }) : false)));
    const used = done.filter(Boolean).length;
    speak(t("{used} of {count} answers were used.", { used, count: marked.length }));
    this.redraw();
  }

  tick() {
    for (const node of this.list.querySelectorAll("[data-until]")) {
      const words = aboutTime(node.dataset.until);
      if (node.textContent !== words) node.textContent = words;
      node.classList.toggle("short", left(node.dataset.until) < 60);
    }
  }
}
