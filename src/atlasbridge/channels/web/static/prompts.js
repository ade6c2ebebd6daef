// The first view: open prompts as cards, newest first, and what became of the last ones.

import { Card, overCard, ways } from "/card.js";
import { el, empty, show, speak } from "/dom.js";
import { prompts, settled, subscribe } from "/model.js";

const STEADY_MS = 350; // a tap this soon after the list moved was meant for what stood there before

export function promptsView(main, page) {
  const cards = new Map();
  const list = el("div", { cls: "stack", id: "cards" });
  const over = el("section", { cls: "settled", "aria-label": "Settled just now" });
  let movedAt = 0;
  show(main, el("h1", { cls: "unseen" }, "Prompts"), list, over);

  function draw() {
    for (const [id, card] of cards) if (!prompts.has(id)) { card.node.remove(); cards.delete(id); movedAt = performance.now(); }
    for (const prompt of prompts.values()) if (!cards.has(prompt.prompt_id)) add(prompt);
    for (const card of cards.values()) card.progress();
    list.querySelector(".empty")?.remove();
    if (!cards.size) list.append(empty("Nothing waits for you.", "When a program stops and asks, it appears here at once."));
    show(over, settled.length ? [el("h2", {}, "Settled just now"), el("div", { cls: "stack" }, ...settled.map(overCard))] : []);
  }

  function add(prompt) {
    const card = new Card(prompt, page.host);
    cards.set(prompt.prompt_id, card);
    list.prepend(card.node);
    movedAt = performance.now();
    if (cards.size === 1 && !document.activeElement?.closest?.("input, textarea")) window.scrollTo(0, 0);
    speak(`${prompt.session?.tool || "A program"} asks: ${prompt.excerpt}`);
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
    if (cards.size === 1) return [...cards.values()][0];
    list.querySelector("[data-prompt]")?.focus();
    return null;
  }

  function pick(key, card) {
    const offered = ways(card.prompt);
    if (card.prompt.constraints.multi_select) return null;
    if (/^[1-9]$/.test(key)) return offered.find((choice) => choice.value === key) || offered[Number(key) - 1];
    if (key === "n") { const no = offered.filter((choice) => choice.refuses); return no.length === 1 ? no[0] : null; }
    if (key === "y") return offered.find((choice) => !choice.refuses && !choice.always && /^y(es)?\b/i.test(choice.label));
    return null;
  }

  function press(event) {
    if (event.altKey || event.repeat || performance.now() - movedAt < STEADY_MS) return undefined;
    const inField = event.target.closest?.("input, textarea");
    if (inField && event.key === "Enter" && !event.isComposing && (inField.tagName === "INPUT" || event.ctrlKey || event.metaKey)) return inField.closest(".say")?.querySelector(".send").click();
    if (inField || event.ctrlKey || event.metaKey || !/^[1-9yn]$/.test(event.key)) return undefined;
    const card = chosenCard();
    const choice = card && pick(event.key, card);
    if (choice) { event.preventDefault(); if (choice.words) card.field.focus(); else card.answer(choice.value); }
    return undefined;
  }

  const timer = setInterval(() => cards.forEach((card) => card.tick()), 1000);
  const stop = subscribe(draw);
  main.addEventListener("click", early, true);
  document.addEventListener("keydown", press);
  draw();
  return () => { clearInterval(timer); stop(); main.removeEventListener("click", early, true); document.removeEventListener("keydown", press); };
}
