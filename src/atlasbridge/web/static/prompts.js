// The first view: one card at a time, the soonest deadline first.  Several are a list: beside the card on a wide screen,
// behind "All" on a small one.

import { nextOf, pick } from "/answering.js";
import { get } from "/api.js";
import { Card, lateCard, overCard, receiptLine } from "/card.js";
import { el, empty, show, speak } from "/dom.js";
import { Inbox } from "/inbox.js";
import { link, myAnswer, prompts, settled, subscribe, waiting } from "/model.js";
import { sentence } from "/subject.js";
import { nameOf, OPEN, stateName, t } from "/words.js";

export function promptsView(main, page, given, name) {
  let [id, listed] = [given || "", name === "list"];
  let card = null; // the one that is drawn
  let drawing = false;
  let left = { prompt: null, at: -Infinity, addressed: false }; // the last card whose question went from the screen
  const noted = new Set(); // prompts whose end is told above the next card
  const list = el("div", { cls: "stack", id: "cards" });
  const inbox = new Inbox(() => draw());
  const receipts = el("div", { cls: "receipts", id: "receipts" });
  const back = el("a", { cls: "back", href: "#list", hidden: true });
  const late = el("section", { cls: "settled", "aria-label": t("Still waiting") });
  const over = el("section", { cls: "settled", "aria-label": t("Recently settled") });
  const before = el("div", { cls: "before" }); // a prompt that was opened by its address and is settled already
  const pane = el("div", { cls: "pane" }, receipts, back, before, list, late, over);
  const frame = el("div", { cls: "panes" }, inbox.node, pane);
  show(main, el("h1", { cls: "unseen" }, t("Prompts")), frame);
  const steady = new Steady(main, () => draw());
  const room = window.matchMedia("(min-width: 1000px)");

  // An answer that is on its way: its card stays until it is known what became of it.
  const isPending = (one) => ["sending", "unknown"].includes(myAnswer(one.prompt.prompt_id)?.state);

  function current() {
    if (id && prompts.has(id)) return prompts.get(id);
    if (card && prompts.has(card.prompt.prompt_id)) return prompts.get(card.prompt.prompt_id);
    return nextOf(prompts.values(), "");
  }

  // A question that was asked again, with more of it, has its place back, also where the next card has just come there.
  function returned() {
    if (id && prompts.has(id)) return undefined; // a person opened another one
    const gone = card && !prompts.has(card.prompt.prompt_id) ? { prompt: card.prompt, addressed: id === card.prompt.prompt_id } : performance.now() - left.at < RETURNS_MS ? left : null;
    const again = gone?.prompt && askedAgain(gone.prompt);
    if (again && gone.addressed) { id = again.prompt_id; window.history.replaceState(null, "", `#prompt/${id}`); }
    if (again) left = { ...left, prompt: null };
    return again;
  }

  function draw() {
    if (!steady.mayDraw()) return;
    const many = prompts.size > 1;
    const onlyList = many && listed && !room.matches;
    const kept = card && isPending(card) ? card.prompt : null;
    if (card && !kept && !prompts.has(card.prompt.prompt_id) && !askedAgain(card.prompt)) noted.add(card.prompt.prompt_id);
    if (many) inbox.draw(); else if (!inbox.node.hidden) inbox.clear();
    const shown = kept || (onlyList ? null : returned() || current());
    frame.classList.toggle("many", many);
    frame.classList.toggle("open", many && !onlyList);
    inbox.node.hidden = !many;
    if (many) inbox.point(shown?.prompt_id || "");
    drawReceipt();
    drawCard(shown);
    back.hidden = !many || onlyList;
    back.textContent = `‹ ${t("All {count} prompts", { count: prompts.size })}`;
    show(late, waiting.size ? [el("h2", {}, t("Still waiting")), el("div", { cls: "stack" }, ...[...waiting.values()].map(lateCard))] : []);
    const done = settled.filter(({ prompt }) => prompt.prompt_id !== card?.prompt.prompt_id && !waiting.has(prompt.prompt_id) && !askedAgain(prompt));
    show(over, done.length ? [el("h2", {}, t("Recently settled")), el("div", { cls: "stack" }, ...done.map(overCard))] : []);
  }

  // A burst of events is one redraw.
  function soon() {
    if (drawing) return;
    drawing = true;
    const now = () => { drawing = false; if (frame.isConnected) draw(); };
    if (document.visibilityState === "visible") requestAnimationFrame(now); else setTimeout(now, 50);
  }

  function nothing() {
    if (link.state === "off") return null; // the first word is awaited: what would stand here now would move when it comes
    if (link.state === "live" && waiting.size) return empty(t("No new prompts."), t("The questions below have expired, but the tools still show them."));
    if (link.state === "live") return empty(t("Nothing is waiting for you."), t("When a program stops and asks, it appears here at once."));
    return empty(t("Not connected."), t("The page shows what is waiting for you once it reaches the hub again."));
  }

  // What became of the last answer stays in sight above the next card.
  function drawReceipt() {
    const last = settled.find(({ prompt }) => noted.has(prompt.prompt_id) && !askedAgain(prompt));
    show(receipts, last ? [receiptLine(last, () => { noted.clear(); draw(); })] : []);
  }

  function drawCard(prompt) {
    const same = card && prompt && card.prompt.prompt_id === prompt.prompt_id;
    if (same && (isPending(card) || card.busy || !improved(card.prompt, prompt))) card.progress();
    else if (card || prompt) {
      const answered = Boolean(card && myAnswer(card.prompt.prompt_id));
      if (card && !same && isWithdrawn(card.prompt.prompt_id)) left = { prompt: card.prompt, at: performance.now(), addressed: id === card.prompt.prompt_id };
      if (id && !prompts.has(id) && prompt?.prompt_id !== id && !before.childNodes.length) { id = ""; window.history.replaceState(null, "", listed ? "#list" : "#prompts"); }
      const writing = same && card.node.contains(document.activeElement) && document.activeElement.matches("input, textarea");
      if (writing) return;
      const more = Boolean(prompt) && (same || settled.some((item) => askedAgain(item.prompt) === prompt));
      card = prompt ? new Card(prompt, page.host) : null;
      if (more && card.can) card.say(t("This prompt has changed. Read it again."), "warn");
      steady.moved(answered || more);
      show(list, card?.node);
      if (!same && !room.matches && !document.activeElement?.closest?.("input, textarea")) window.scrollTo(0, 0);
    }
    if (card || prompts.size) list.querySelector(".empty")?.remove();
    else show(list, nothing());
  }

  function tick() {
    card?.tick();
    inbox.tick();
  }

  function step(by) {
    const { ids } = inbox;
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(card?.prompt.prompt_id) + by))];
    if (next) window.location.hash = `#prompt/${next}`;
  }

  function press(event) {
    if (event.altKey || event.repeat || !steady.rested()) return undefined;
    const inField = event.target.closest?.("input, textarea");
    if (inField && event.key === "Enter" && !event.isComposing && (inField.tagName === "INPUT" || event.ctrlKey || event.metaKey)) return inField.closest(".say")?.querySelector(".send").click();
    if (inField || event.ctrlKey || event.metaKey) return undefined;
    if (!inbox.node.hidden && (event.key === "j" || event.key === "k")) return step(event.key === "j" ? 1 : -1);
    if (!inbox.node.hidden && event.key === "/") { event.preventDefault(); return inbox.filter.focus(); }
    if (!inbox.node.hidden && event.key === "x") return inbox.toggle(card?.prompt.prompt_id);
    if (!/^[1-9yn]$/.test(event.key) || !card) return undefined;
    if (prompts.size > 1 && !id && !card.node.contains(document.activeElement)) return card.node.focus(); // first which one, then what
    const choice = pick(event.key, card.prompt);
    if (choice) { event.preventDefault(); card.choose(choice); }
    return undefined;
  }

  const timer = setInterval(tick, 1000);
  const stop = subscribe((change) => {
    if (change.kind === "prompt" && change.event === "prompt.raised" && change.prompt) speak(t("{name} asks: {text}", { name: nameOf(change.prompt), text: sentence(change.prompt) }));
    soon();
  });

  function open(wanted, how) {
    [id, listed] = [wanted || "", how === "list"];
    show(before);
    if (id && !prompts.has(id)) {
      get(`/prompts/${id}`).then((prompt) => { if (id === wanted && !OPEN.has(prompt.state) && frame.isConnected) show(before, overCard({ prompt, sentence: stateName(prompt.state), stage: "", head: "" })); }, () => {});
    }
    draw();
  }

  room.addEventListener("change", draw);
  document.addEventListener("keydown", press);
  open(id, name);
  const leave = () => { clearInterval(timer); stop(); steady.stop(); room.removeEventListener("change", draw); document.removeEventListener("keydown", press); };
  leave.go = open; // from one prompt to the next the list keeps its filter, its marks and its place
  return leave;
}

// Whether more is known of the same prompt now: a hook that came late tells what the screen could not show.
const improved = (before, now) => before.whole !== now.whole || before.subject?.text !== now.subject?.text || before.may_answer !== now.may_answer
  || Boolean(before.constraints.disagrees) !== Boolean(now.constraints.disagrees);

const RETURNS_MS = 1000;
const isWithdrawn = (id) => settled.find(({ prompt }) => prompt.prompt_id === id)?.prompt.state === "withdrawn";

// The same question under a new id: its hook told more after it was asked, and an answer to the first one is refused.
function askedAgain({ prompt_id: id, session_id: session, digest }) {
  if (!digest || !isWithdrawn(id)) return undefined;
  return [...prompts.values()].find((prompt) => prompt.session_id === session && prompt.digest === digest);
}

// Nothing moves under a finger.  While one is down nothing is redrawn, and only a press that went down and up on the same
// control, at the same place, after that place had rested for a moment, counts.  Keys and assistive tools press without one.

const STEADY_MS = 350; // a tap this soon after something moved was meant for what stood there before
const AFTER_ANSWER_MS = 650; // the next card comes where the last one was: an impatient second tap is not for it

class Steady {
  // `area`: in which presses are watched; `redraw`: what was put off while a finger was down.
  constructor(area, redraw) {
    this.area = area;
    this.redraw = redraw;
    this.held = false;
    this.late = false;
    this.pressed = null;
    this.quietUntil = -Infinity;
    this.down = (event) => {
      this.held = true;
      const control = this.control(event);
      this.pressed = control && { control, at: place(control), early: !this.rested() };
    };
    this.up = () => { this.held = false; setTimeout(() => { if (this.late && !this.held) { this.late = false; this.redraw(); } }, 0); };
    this.cancel = () => { this.pressed = null; this.up(); };
    this.click = (event) => {
      const control = this.control(event);
      if (!control || event.detail === 0) return;
      const meant = this.pressed && this.pressed.control === control && !this.pressed.early && this.pressed.at === place(control);
      this.pressed = null;
      if (!meant) { event.preventDefault(); event.stopImmediatePropagation(); }
    };
    window.addEventListener("pointerdown", this.down, true);
    window.addEventListener("pointerup", this.up, true);
    window.addEventListener("pointercancel", this.cancel, true);
    window.addEventListener("click", this.click, true);
  }

  control(event) {
    const found = event.target.closest?.("button, a, label.choice");
    return found && this.area.contains(found) ? found : null;
  }

  moved(answered = false) { this.quietUntil = Math.max(this.quietUntil, performance.now() + (answered ? AFTER_ANSWER_MS : STEADY_MS)); }

  rested() { return performance.now() >= this.quietUntil; }

  // Whether to draw now; otherwise it is done when the finger is up.
  mayDraw() {
    this.late ||= this.held;
    return !this.held;
  }

  stop() {
    for (const [name, handler] of /** @type {[string, (event: any) => void][]} */ ([["pointerdown", this.down], ["pointerup", this.up], ["pointercancel", this.cancel], ["click", this.click]])) window.removeEventListener(name, handler, true);
  }
}

function place(control) {
  const { left, top } = control.getBoundingClientRect();
  return `${Math.round(left)},${Math.round(top)}`;
}
