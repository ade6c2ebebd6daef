// Gives one answer to the hub and finds out what became of it.  What is shown meanwhile is left to who asked for it.

import { get, me, newKey, post } from "/api.js";
import { speak } from "/dom.js";
import { changed, learn, setMine } from "/model.js";
import { sign } from "/passkey.js";
import { Refused } from "/refused.js";
import { labelText, OPEN, t } from "/words.js";

const ASK_AGAIN_MS = 1500;
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** @typedef {(sentence: string, tone: string) => void} Say */

// `say(sentence, tone)` tells the person.  True: it was used; false: it was not, and the prompt can be answered again
// where it is still open.
/** @param {Say} say */
export async function give(prompt, { value, asText = false, label = value }, say = () => {}) {
  const id = prompt.prompt_id;
  const key = newKey();
  let passkey;
  if (prompt.constraints.proof) {
    say(t("Waiting for your passkey…"), "");
    try { passkey = await sign(prompt, value, asText); } catch (error) { return refused(id, label, error.message, say); }
  }
  setMine(id, { label, state: "sending" });
  say(t("Sending…"), "");
  try {
    const answer = await post(`/prompts/${id}/reply`, { value, as_text: asText, session_id: prompt.session_id, request_key: key, ...(passkey ? { passkey } : {}) });
    return arrived(id, label, answer.message, answer.prompt, say, answer);
  } catch (error) {
    if (error instanceof Refused && error.status === 0) return findOut(id, key, label, say);
    return refused(id, label, error.message, say);
  }
}

function arrived(id, label, message, prompt, say, heard = null) {
  setMine(id, { label, state: "used" });
  say(message, "good");
  learn(prompt, heard?.stage ? { sentence: message, stage: heard.stage, audit_head: heard.audit_head } : null);
  changed();
  return true;
}

function refused(id, label, message, say) {
  setMine(id, { label, state: "refused", sentence: message });
  say(message, "bad");
  speak(t("Refused: {message}", { message }));
  return false;
}

// The connection broke while the answer was on its way.  Nobody knows yet; the hub is asked until it says.
async function findOut(id, key, label, say) {
  setMine(id, { label, state: "unknown" });
  say(t("The connection broke. AtlasBridge does not know yet whether “{label}” arrived.", { label }), "warn");
  speak(t("The connection broke. AtlasBridge does not know yet whether your answer arrived."));
  for (;;) {
    await pause(ASK_AGAIN_MS);
    let told;
    try { told = await get(`/prompts/${id}/outcome?request_key=${key}`); } catch (error) {
      if (error.status === 0 || error.status === 401) continue;
      return refused(id, label, error.message, say);
    }
    if (told.arrived && !told.refused) return arrived(id, label, told.message, told.prompt, say);
    if (told.arrived) return refused(id, label, told.message, say);
    if (OPEN.has(told.prompt.state)) {
      setMine(id, null);
      say(t("Your answer did not arrive. It is still asked: answer again."), "bad");
      return false;
    }
    if (told.prompt.answer?.by === `web:${me().name}` && answerLabel(told.prompt) === label) return arrived(id, label, "", told.prompt, say);
    setMine(id, { label, state: "lost" });
    learn(told.prompt);
    changed();
    return false;
  }
}

// What decides on this page: the ways in which a prompt can be answered, which of them stand in the bar, and which prompt
// comes next.  No element is touched here.

export function ways(prompt) {
  if (prompt.constraints.secret) return [];
  if (prompt.choices.length) return prompt.choices;
  if (prompt.type === "yes_no") return [{ value: "y", label: "Yes" }, { value: "n", label: "No", refuses: true }];
  if (prompt.type === "confirm_enter") return [{ value: "enter", label: "Continue (Enter)" }];
  return [];
}

// What a person reads on the button of a choice.
export const labelOf = (choice) => labelText(choice.value, choice.label);

// The same for an answer that was given.
export function answerLabel({ answer, choices = [] }) {
  const { kind, value, label } = answer;
  if (value === null) return t("a secret");
  if (kind === "yes" || kind === "no") return labelText(kind[0], label);
  if (kind !== "choice" && kind !== "choices") return label;
  const named = value.split(",").filter(Boolean).map((part) => choices.find((choice) => choice.value === part)).map((choice) => (choice ? labelOf(choice) : ""));
  return named.length ? (named.every(Boolean) ? named.join(", ") : label) : t("none of them");
}

// Which of them a key means; null where it is not certain.
export function pick(key, prompt) {
  const offered = allowed(prompt);
  if (prompt.constraints.multi_select) return null;
  if (/^[1-9]$/.test(key)) return offered.find((choice) => choice.value === key) || (offered.length === ways(prompt).length ? offered[Number(key) - 1] : undefined);
  if (key === "n") { const no = offered.filter((choice) => choice.refuses); return no.length === 1 ? no[0] : null; }
  if (key === "y") return offered.find((choice) => !choice.refuses && !choice.always && /^y(es)?\b/i.test(choice.label));
  return null;
}

// Where the hook and the screen tell different things, nobody knows what would be approved: only refusing is offered.
export const disagrees = (prompt) => Boolean(prompt.constraints.disagrees);
export const allowed = (prompt) => (disagrees(prompt) ? ways(prompt).filter((choice) => choice.refuses) : ways(prompt));

// `no` and `yes` are always on the screen; `rest` stands in the card.  A prompt with two plain choices has no "yes".
export function bar(prompt) {
  const offered = allowed(prompt);
  if (prompt.constraints.multi_select) return { no: offered.find((choice) => choice.refuses), yes: null, rest: offered };
  const plain = offered.filter((choice) => !choice.refuses && !choice.always && !choice.words);
  const refusing = offered.filter((choice) => choice.refuses && !choice.words);
  const yes = plain.length === 1 && (refusing.length || offered.length === 1) ? plain[0] : null;
  const no = refusing.length ? refusing[0] : null;
  return { no, yes, rest: offered.filter((choice) => choice !== yes && choice !== no) };
}

const ASKS_LEAVE = new Set(["command", "edit", "fetch", "plan", "tool", "trust"]);

// A permission is one also where it is not known for what.
export const isPermission = (prompt) => ASKS_LEAVE.has(prompt.subject?.kind)
  || (prompt.choices.some((choice) => choice.refuses) && prompt.choices.some((choice) => choice.always));

// Whether it can be answered together with others: only what is whole, and only where one press is an answer.
export const canBeMarked = (prompt) => !prompt.constraints.proof && !prompt.constraints.secret && !prompt.constraints.idle && !disagrees(prompt)
  && prompt.whole !== false && prompt.type !== "unknown" && !prompt.constraints.multi_select && prompt.may_answer !== false && ways(prompt).length > 0;

const until = (prompt) => Date.parse(prompt.expires_at) || Infinity;

// The soonest deadline first; what only waits for a next instruction comes last.
export const bySoonest = (one, other) => Number(Boolean(one.constraints.idle)) - Number(Boolean(other.constraints.idle))
  || until(one) - until(other) || String(one.created_at).localeCompare(String(other.created_at)) || one.prompt_id.localeCompare(other.prompt_id);

// Which prompt follows an answer: the soonest of those that are still open.
export const nextOf = (open, answered) => [...open].filter((prompt) => prompt.prompt_id !== answered).sort(bySoonest)[0] || null;
