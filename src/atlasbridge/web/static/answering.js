// Gives one answer to the hub and finds out what became of it.  What is shown meanwhile is left to who asked for it.

import { Refused, get, me, newKey, post } from "/api.js";
import { speak } from "/dom.js";
import { t } from "/language.js";
import { changed, learn, setMine } from "/model.js";
import { sign } from "/passkey.js";
import { OPEN } from "/words.js";

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
  say(t("The connection broke. It is not known yet whether “{label}” arrived.", { label }), "warn");
  speak(t("The connection broke. It is not known yet whether your answer arrived."));
  for (;;) {
    await pause(ASK_AGAIN_MS);
    let told;
    try { told = await get(`/prompts/${id}/outcome?request_key=${key}`); } catch (error) {
      if (error.status === 0 || error.status === 401 || error.status === 503) continue;
      return refused(id, label, error.message, say);
    }
    if (told.arrived && !told.refused) return arrived(id, label, told.message, told.prompt, say);
    if (told.arrived) return refused(id, label, told.message, say);
    if (OPEN.has(told.prompt.state)) {
      setMine(id, null);
      say(t("Your answer did not arrive. It is still asked: answer again."), "bad");
      return false;
    }
    if (told.prompt.answer?.by === `web:${me().name}` && told.prompt.answer.label === label) return arrived(id, label, "", told.prompt, say);
    setMine(id, { label, state: "lost" });
    learn(told.prompt);
    changed();
    return false;
  }
}
