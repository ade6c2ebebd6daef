// A card's "Later": an answer for another moment, being asked again in a while, and what is kept already, to be taken back.

import { call, may, post } from "/api.js";
import { el, show, speak, toast } from "/dom.js";
import { prompts, subscribe } from "/model.js";
import { moment } from "/words.js";
import { t } from "/language.js";

const snoozes = () => [[t("In 15 minutes"), 900], [t("In an hour"), 3600]];
const LIMIT = "limit_resets_at";

// `offered`: the choices of the card; a text field of its own where words are taken.
export function laterBox(prompt, offered) {
  if (!may("answer") || prompt.constraints.secret) return null;
  const kept = el("ul", { cls: "kept" });
  const box = el("details", { cls: "later" }, el("summary", {}, t("Later…")), kept, snoozing(prompt), answering(prompt, offered), atReset(prompt));
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
    one.kind === "snooze" ? t("Asked again {time} ({who})", { time: moment(one.due_at), who: one.by_name }) : t("“{label}” is answered {time} ({who})", { label: one.value, time: moment(one.due_at), who: one.by_name }),
    el("button", { type: "button", cls: "quiet take-back", on: { click: () => send(() => call("DELETE", `/later/${one.later_id}`)) } }, t("Take back"))));
  show(list, ...items);
  list.hidden = !items.length;
  if (items.length) box.open = true;
}

function snoozing(prompt) {
  return el("div", { cls: "row", role: "group", "aria-label": t("Ask me again") }, el("span", {}, t("Ask me again:")),
    ...snoozes().map(([label, seconds]) => el("button", { type: "button", cls: "quiet snooze", "data-s": seconds, on: { click: () => put(prompt, { snooze_s: seconds }) } }, label)));
}

function answering(prompt, offered) {
  const single = !prompt.constraints.multi_select;
  const choices = single ? offered.filter((choice) => !choice.words) : [];
  if (!choices.length && !prompt.free_text) return null;
  const id = `later-${prompt.prompt_id}`;
  const what = choices.length
    ? el("select", { id, "aria-label": t("Answer") }, ...choices.map((choice) => el("option", { value: choice.value }, choice.label)))
    : el("input", { id, type: "text", value: "continue", "aria-label": t("Answer"), maxlength: 1000 });
  const at = el("input", { type: "text", "aria-label": t("When"), placeholder: t("06:00, fri 12:00, in 2h"), autocomplete: "off", cls: "when" });
  const give = () => put(prompt, { value: what.value, as_text: !choices.length, when: at.value });
  return el("div", { cls: "row" }, el("label", { for: id }, t("Answer")), what, el("span", {}, t("at")), at,
    el("button", { type: "button", cls: "postpone", on: { click: give } }, t("Answer then")));
}

// Where the screen says when a usage limit is over, going on can be said now for then.
function atReset(prompt) {
  const resets = prompt.constraints[LIMIT];
  if (!resets || !prompt.free_text) return null;
  return el("button", { type: "button", cls: "main at-reset", on: { click: () => put(prompt, { value: "continue", as_text: true, when: "limit-resets" }) } },
    t("“continue” when the limit resets, {time}", { time: moment(resets) }));
}

const put = (prompt, body) => send(() => post(`/prompts/${prompt.prompt_id}/later`, body));

async function send(request) {
  try {
    const told = await request();
    toast(told.message);
    speak(told.message);
  } catch (error) { toast(error.message); }
}
