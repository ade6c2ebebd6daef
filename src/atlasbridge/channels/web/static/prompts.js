// The first view: what waits for an answer.  A few prompts are whole cards; many are a list beside one card.

import { get } from "/api.js";
import { Card, lateCard, overCard, ways } from "/card.js";
import { PLAIN, el, empty, show, speak } from "/dom.js";
import { link, myAnswer, prompts, settled, subscribe, waiting } from "/model.js";
import { oneLine } from "/subject.js";
import { OPEN, STATE, clock, folder, left } from "/words.js";

const STEADY_MS = 350; // a tap this soon after the list moved was meant for what stood there before
const FEW = 3;

export function promptsView(main, page, id) {
  const cards = new Map(); // only those that are drawn
  const list = el("div", { cls: "stack", id: "cards" });
  const rows = el("ul", { cls: "inbox" });
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter what waits", ...PLAIN });
  const side = el("section", { cls: "side", "aria-label": "All that wait", hidden: true }, el("div", { cls: "side-head" }, el("h2", {}, "Waiting"), filter), rows);
  const late = el("section", { cls: "settled", "aria-label": "Still waiting" });
  const over = el("section", { cls: "settled", "aria-label": "Settled just now" });
  const before = el("div", { cls: "before" }); // a prompt that was opened by its address and is settled already
  const pane = el("div", { cls: "pane" }, before, list, late, over);
  const frame = el("div", { cls: "panes" }, side, pane);
  let chosen = id || "";
  let movedAt = 0;
  show(main, el("h1", { cls: "unseen" }, "Prompts"), frame);

  // A card whose answer is on its way stays in sight until it is known what became of it.
  const pending = () => [...cards.values()].filter((card) => !prompts.has(card.prompt.prompt_id)
    && ["sending", "unknown"].includes(myAnswer(card.prompt.prompt_id)?.state));

  function draw() {
    const many = prompts.size > FEW;
    if (chosen && !prompts.has(chosen) && !cards.has(chosen)) chosen = id && !prompts.size ? id : "";
    const shown = many || (id && prompts.has(id)) ? [prompts.get(chosen) || (many && wide() ? newest() : null)].filter(Boolean) : [...prompts.values()];
    frame.classList.toggle("many", many);
    frame.classList.toggle("open", many && Boolean(prompts.get(chosen)));
    side.hidden = !many;
    if (many) drawRows(shown[0]?.prompt_id);
    drawCards(shown);
    list.querySelector(".empty")?.remove();
    list.querySelector(".back")?.remove();
    if (!cards.size && !many) list.append(nothing());
    if (prompts.size > 1 && chosen && shown.length === 1) list.prepend(el("a", { cls: "back", href: "#prompts" }, `‹ All ${prompts.size} that wait`));
    show(late, waiting.size ? [el("h2", {}, "Still waiting"), el("div", { cls: "stack" }, ...[...waiting.values()].map(lateCard))] : []);
    const done = settled.filter(({ prompt }) => !cards.has(prompt.prompt_id) && !waiting.has(prompt.prompt_id));
    show(over, done.length ? [el("h2", {}, "Settled just now"), el("div", { cls: "stack" }, ...done.map(overCard))] : []);
  }

  const newest = () => [...prompts.values()].at(-1);
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

  function drawRows(current) {
    const words = filter.value.trim().toLowerCase();
    const fits = (prompt) => !words || [prompt.excerpt, prompt.session?.tool, prompt.session?.label, prompt.session?.cwd, prompt.subject?.text].join(" ").toLowerCase().includes(words);
    const found = [...prompts.values()].reverse().filter(fits);
    show(rows, found.length ? found.map((prompt) => rowOf(prompt, prompt.prompt_id === current)) : el("li", { cls: "soft none" }, "None of them fits."));
  }

  function rowOf(prompt, here) {
    const session = prompt.session || {};
    return el("li", {}, el("a", { cls: "line", href: `#prompt/${prompt.prompt_id}`, "data-row": prompt.prompt_id, "aria-current": here ? "true" : null },
      el("span", { cls: "line-who" }, el("strong", {}, session.label || session.tool || "A program"), el("small", {}, folder(session.cwd))),
      el("span", { cls: "line-asks" }, prompt.constraints.secret ? "asks for a secret" : oneLine(prompt)),
      el("small", { cls: "line-left", "data-until": prompt.expires_at }, clock(left(prompt.expires_at)))));
  }

  function tick() {
    cards.forEach((card) => card.tick());
    for (const node of rows.querySelectorAll("[data-until]")) node.textContent = clock(left(node.dataset.until));
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

  function pick(key, card) {
    const offered = ways(card.prompt);
    if (card.prompt.constraints.multi_select) return null;
    if (/^[1-9]$/.test(key)) return offered.find((choice) => choice.value === key) || offered[Number(key) - 1];
    if (key === "n") { const no = offered.filter((choice) => choice.refuses); return no.length === 1 ? no[0] : null; }
    if (key === "y") return offered.find((choice) => !choice.refuses && !choice.always && /^y(es)?\b/i.test(choice.label));
    return null;
  }

  function step(by) {
    const ids = [...rows.querySelectorAll("[data-row]")].map((row) => row.dataset.row);
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf([...cards.keys()][0]) + by))];
    if (next) window.location.hash = `#prompt/${next}`;
  }

  function press(event) {
    if (event.altKey || event.repeat || performance.now() - movedAt < STEADY_MS) return undefined;
    const inField = event.target.closest?.("input, textarea");
    if (inField && event.key === "Enter" && !event.isComposing && (inField.tagName === "INPUT" || event.ctrlKey || event.metaKey)) return inField.closest(".say")?.querySelector(".send").click();
    if (inField || event.ctrlKey || event.metaKey) return undefined;
    if (!side.hidden && (event.key === "j" || event.key === "k")) return step(event.key === "j" ? 1 : -1);
    if (!side.hidden && event.key === "/") { event.preventDefault(); return filter.focus(); }
    if (!/^[1-9yn]$/.test(event.key)) return undefined;
    const card = chosenCard();
    const choice = card && pick(event.key, card);
    if (choice) { event.preventDefault(); if (choice.words) card.field.focus(); else card.answer(choice.value, false, choice.label); }
    return undefined;
  }

  const timer = setInterval(tick, 1000);
  const stop = subscribe((change) => {
    if (change.kind === "prompt" && change.event === "prompt.raised" && change.prompt) speak(`${change.prompt.session?.tool || "A program"} asks: ${change.prompt.excerpt}`);
    draw();
  });
  if (id && !prompts.has(id)) {
    get(`/prompts/${id}`).then((prompt) => { if (!OPEN.has(prompt.state) && frame.isConnected) show(before, overCard({ prompt, sentence: STATE[prompt.state], stage: "" })); }, () => {});
  }
  filter.addEventListener("input", draw);
  const room = window.matchMedia("(min-width: 1000px)");
  room.addEventListener("change", draw);
  main.addEventListener("click", early, true);
  document.addEventListener("keydown", press);
  draw();
  return () => { clearInterval(timer); stop(); room.removeEventListener("change", draw); main.removeEventListener("click", early, true); document.removeEventListener("keydown", press); };
}
