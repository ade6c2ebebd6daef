// A card's "Later": an answer for another moment, being asked again in a while, and what is kept already, to be taken back.

import { call, may, post } from "/api.js";
import { el, show, speak, toast } from "/dom.js";
import { prompts, subscribe } from "/model.js";
import { moment } from "/words.js";

const SNOOZES = [["In 15 minutes", 900], ["In an hour", 3600]];
const LIMIT = "limit_resets_at";

// `offered`: the choices of the card; a text field of its own where words are taken.
export function laterBox(prompt, offered) {
  if (!may("answer") || prompt.constraints.secret) return null;
  const kept = el("ul", { cls: "kept" });
  const box = el("details", { cls: "later" }, el("summary", {}, "Later…"), kept, snoozing(prompt), answering(prompt, offered), atReset(prompt));
  const draw = () => {
    const now = prompts.get(prompt.prompt_id) || prompt;
    prompt.expires_at = now.expires_at; // what is kept for later gives it another end; the card's ring reads it here
    drawKept(kept, box, now);
  };
  const stop = subscribe(() => { if (box.isConnected || !kept.dataset.drawn) draw(); else stop(); });
  draw();
  return box;
}

function drawKept(list, box, prompt) {
  list.dataset.drawn = "yes";
  const items = (prompt.later || []).map((one) => el("li", { "data-later": one.later_id },
    one.kind === "snooze" ? `Asked again ${moment(one.due_at)} (${one.by_name})` : `“${one.value}” is answered ${moment(one.due_at)} (${one.by_name})`,
    el("button", { type: "button", cls: "quiet take-back", on: { click: () => send(() => call("DELETE", `/later/${one.later_id}`)) } }, "Take back")));
  show(list, ...items);
  list.hidden = !items.length;
  if (items.length) box.open = true;
}

function snoozing(prompt) {
  return el("div", { cls: "row", role: "group", "aria-label": "Ask me again" }, el("span", {}, "Ask me again:"),
    ...SNOOZES.map(([label, seconds]) => el("button", { type: "button", cls: "quiet snooze", "data-s": seconds, on: { click: () => put(prompt, { snooze_s: seconds }) } }, label)));
}

function answering(prompt, offered) {
  const single = !prompt.constraints.multi_select;
  const choices = single ? offered.filter((choice) => !choice.words) : [];
  if (!choices.length && !prompt.free_text) return null;
  const id = `later-${prompt.prompt_id}`;
  const what = choices.length
    ? el("select", { id, "aria-label": "Answer" }, ...choices.map((choice) => el("option", { value: choice.value }, choice.label)))
    : el("input", { id, type: "text", value: "continue", "aria-label": "Answer", maxlength: 1000 });
  const at = el("input", { type: "text", "aria-label": "When", placeholder: "06:00, fri 12:00, in 2h", autocomplete: "off", cls: "when" });
  const give = () => put(prompt, { value: what.value, as_text: !choices.length, when: at.value });
  return el("div", { cls: "row" }, el("label", { for: id }, "Answer"), what, el("span", {}, "at"), at,
    el("button", { type: "button", cls: "postpone", on: { click: give } }, "Answer then"));
}

// Where the screen says when a usage limit is over, going on can be said now for then.
function atReset(prompt) {
  const resets = prompt.constraints[LIMIT];
  if (!resets || !prompt.free_text) return null;
  return el("button", { type: "button", cls: "main at-reset", on: { click: () => put(prompt, { value: "continue", as_text: true, when: "limit-resets" }) } },
    `“continue” when the limit resets, ${moment(resets)}`);
}

const put = (prompt, body) => send(() => post(`/prompts/${prompt.prompt_id}/later`, body));

async function send(request) {
  try {
    const told = await request();
    toast(told.message);
    speak(told.message);
  } catch (error) { toast(error.message); }
}
