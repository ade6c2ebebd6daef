// The first view: what waits for an answer.  A few prompts are whole cards; many are a list beside one card.

import { get } from "/api.js";
import { Card, lateCard, overCard } from "/card.js";
import { el, empty, show, speak } from "/dom.js";
import { Inbox } from "/inbox.js";
import { link, myAnswer, prompts, settled, subscribe, waiting } from "/model.js";
import { pick } from "/ways.js";
import { OPEN, STATE } from "/words.js";

const STEADY_MS = 350; // a tap this soon after the list moved was meant for what stood there before
const FEW = 3;

export function promptsView(main, page, given) {
  let id = given || "";
  const cards = new Map(); // only those that are drawn
  const list = el("div", { cls: "stack", id: "cards" });
  const inbox = new Inbox(() => draw());
  const late = el("section", { cls: "settled", "aria-label": "Still waiting" });
  const over = el("section", { cls: "settled", "aria-label": "Settled just now" });
  const before = el("div", { cls: "before" }); // a prompt that was opened by its address and is settled already
  const pane = el("div", { cls: "pane" }, before, list, late, over);
  const frame = el("div", { cls: "panes" }, inbox.node, pane);
  let chosen = id || "";
  let movedAt = 0;
  let drawing = false;
  let stays = ""; // the card beside the list: nothing takes its place while it waits
  show(main, el("h1", { cls: "unseen" }, "Prompts"), frame);

  // A card whose answer is on its way stays in sight until it is known what became of it.
  const pending = () => [...cards.values()].filter((card) => !prompts.has(card.prompt.prompt_id)
    && ["sending", "unknown"].includes(myAnswer(card.prompt.prompt_id)?.state));

  function draw() {
    const many = prompts.size > FEW;
    if (chosen && !prompts.has(chosen) && !cards.has(chosen)) chosen = id && !prompts.size ? id : "";
    if (many) inbox.draw(); else if (!inbox.node.hidden) inbox.clear();
    const alone = prompts.get(chosen) || (many && wide() ? prompts.get(stays) || prompts.get(inbox.ids[0]) : null);
    const shown = many || (id && prompts.has(id)) ? [alone].filter(Boolean) : [...prompts.values()];
    stays = many && alone ? alone.prompt_id : "";
    frame.classList.toggle("many", many);
    document.body.classList.toggle("broad", many);
    frame.classList.toggle("open", many && Boolean(prompts.get(chosen)));
    inbox.node.hidden = !many;
    if (many) inbox.point(stays);
    drawCards(shown);
    list.querySelector(".empty")?.remove();
    list.querySelector(".back")?.remove();
    if (!cards.size && !many) list.append(nothing());
    if (prompts.size > 1 && chosen && shown.length === 1) list.prepend(el("a", { cls: "back", href: "#prompts" }, `‹ All ${prompts.size} that wait`));
    show(late, waiting.size ? [el("h2", {}, "Still waiting"), el("div", { cls: "stack" }, ...[...waiting.values()].map(lateCard))] : []);
    const done = settled.filter(({ prompt }) => !cards.has(prompt.prompt_id) && !waiting.has(prompt.prompt_id));
    show(over, done.length ? [el("h2", {}, "Settled just now"), el("div", { cls: "stack" }, ...done.map(overCard))] : []);
  }

  // A burst of events is one redraw.
  function soon() {
    if (drawing) return;
    drawing = true;
    const now = () => { drawing = false; if (frame.isConnected) draw(); };
    if (document.visibilityState === "visible") requestAnimationFrame(now); else setTimeout(now, 50);
  }

  const wide = () => window.matchMedia("(min-width: 1000px)").matches;

  function nothing() {
    if (link.state === "live" && waiting.size) return empty("Nothing new asks.", "But what stands below still waits, though its time is over.");
    if (link.state === "live") return empty("Nothing waits for you.", "When a program stops and asks, it appears here at once.");
    return empty("Not connected.", "What waits for you is not known until the hub can be reached again.");
  }

  function drawCards(shown) {
    const wanted = new Set([...shown.map((prompt) => prompt.prompt_id), ...pending().map((card) => card.prompt.prompt_id)]);
    const anchor = document.activeElement?.closest?.("input, textarea, [data-prompt]");
    const stood = anchor?.getBoundingClientRect().top;
    for (const [known, card] of cards) if (!wanted.has(known)) { card.node.remove(); cards.delete(known); movedAt = performance.now(); }
    for (const prompt of shown) if (!cards.has(prompt.prompt_id)) add(prompt);
    for (const card of cards.values()) card.progress();
    const after = anchor?.isConnected ? anchor.getBoundingClientRect().top : undefined;
    if (stood !== undefined && after !== undefined && after !== stood) window.scrollBy(0, after - stood);
  }

  function add(prompt) {
    const card = new Card(prompt, page.host);
    cards.set(prompt.prompt_id, card);
    const writing = document.activeElement?.closest?.("#cards input, #cards textarea");
    if (writing) list.append(card.node); else list.prepend(card.node); // what a person writes in stays where it is
    movedAt = performance.now();
    if (cards.size === 1 && !document.activeElement?.closest?.("input, textarea")) window.scrollTo(0, 0);
  }

  function tick() {
    cards.forEach((card) => card.tick());
    inbox.tick();
  }

  function early(event) {
    if (performance.now() - movedAt < STEADY_MS && event.target.closest("button") && event.detail > 0) {
      event.stopPropagation();
      event.preventDefault();
    }
  }

  function chosenCard() {
    const focused = document.activeElement?.closest?.("[data-prompt]");
    if (focused) return cards.get(focused.dataset.prompt);
    if (cards.size === 1 && (prompts.size === 1 || chosen)) return [...cards.values()][0];
    list.querySelector("[data-prompt]")?.focus();
    return null;
  }

  function step(by) {
    const { ids } = inbox;
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf([...cards.keys()][0]) + by))];
    if (next) window.location.hash = `#prompt/${next}`;
  }

  function press(event) {
    if (event.altKey || event.repeat || performance.now() - movedAt < STEADY_MS) return undefined;
    const inField = event.target.closest?.("input, textarea");
    if (inField && event.key === "Enter" && !event.isComposing && (inField.tagName === "INPUT" || event.ctrlKey || event.metaKey)) return inField.closest(".say")?.querySelector(".send").click();
    if (inField || event.ctrlKey || event.metaKey) return undefined;
    if (!inbox.node.hidden && (event.key === "j" || event.key === "k")) return step(event.key === "j" ? 1 : -1);
    if (!inbox.node.hidden && event.key === "/") { event.preventDefault(); return inbox.filter.focus(); }
    if (!inbox.node.hidden && event.key === "x") return inbox.toggle([...cards.keys()][0]);
    if (!/^[1-9yn]$/.test(event.key)) return undefined;
    const card = chosenCard();
    const choice = card && pick(event.key, card.prompt);
    if (choice) { event.preventDefault(); if (choice.words) card.field.focus(); else card.answer(choice.value, false, choice.label); }
    return undefined;
  }

  const timer = setInterval(tick, 1000);
  const stop = subscribe((change) => {
    if (change.kind === "prompt" && change.event === "prompt.raised" && change.prompt) speak(`${change.prompt.session?.tool || "A program"} asks: ${change.prompt.excerpt}`);
    soon();
  });
  function open(wanted) {
    id = chosen = wanted || "";
    show(before);
    if (id && !prompts.has(id)) {
      get(`/prompts/${id}`).then((prompt) => { if (id === wanted && !OPEN.has(prompt.state) && frame.isConnected) show(before, overCard({ prompt, sentence: STATE[prompt.state], stage: "" })); }, () => {});
    }
    draw();
  }

  const room = window.matchMedia("(min-width: 1000px)");
  room.addEventListener("change", draw);
  main.addEventListener("click", early, true);
  document.addEventListener("keydown", press);
  open(id);
  const leave = () => { clearInterval(timer); stop(); room.removeEventListener("change", draw); main.removeEventListener("click", early, true); document.removeEventListener("keydown", press); };
  leave.go = open; // from one prompt to the next the list keeps its filter, its marks and its place
  return leave;
}
