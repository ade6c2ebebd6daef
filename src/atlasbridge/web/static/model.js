// What this page knows: open prompts, sessions, what became of the prompts it has seen, and whether it is connected at all.
// Views subscribe to changes.

import { OPEN, learnNames, setServerTime } from "/words.js";

const RANK = ["", "received", "typed", "taken"]; // what comes late over another way takes nothing back
const overtaken = (stage, before) => RANK.includes(stage) && RANK.indexOf(stage) < RANK.indexOf(before);
const KEEP = 6; // settled cards that stay in sight

export const prompts = new Map(); // prompt id -> prompt, oldest first
export const sessions = new Map();
export const waiting = new Map(); // prompt id -> prompt whose time is over and that still stands on its screen
export const settled = []; // newest first: { prompt, sentence, stage }
export const link = { state: "off", since: 0 }; // "live": what is shown is true now
const mine = new Map(); // prompt id -> { label, state: "sending" | "used" | "lost" | "unknown" | "refused", sentence }
const stages = new Map(); // prompt id -> last receipt
const watchers = new Set();

export function subscribe(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

const tell = (change) => watchers.forEach((watcher) => watcher(change));

export const receipt = (promptId) => stages.get(promptId);
export const myAnswer = (promptId) => mine.get(promptId);

export function setMine(promptId, answer) {
  if (answer) mine.set(promptId, answer); else mine.delete(promptId);
  tell({ kind: "mine" });
}

export function setLink(state) {
  if (link.state === state) return;
  link.state = state;
  tell({ kind: "link" });
}

export function take(event) {
  if (event.event === "hello") return begin(event);
  if (event.event === "receipt") stages.set(event.prompt_id, event);
  if (event.session) keepSession(event.session);
  if (event.event === "notice") return tell({ kind: "notice", sentence: event.sentence });
  if (event.prompt) learn(event.prompt, event.event === "receipt" ? event : null);
  return tell({ kind: event.prompt ? "prompt" : "session", event: event.event, prompt: event.prompt });
}

function begin(event) {
  setServerTime(event.now);
  const before = new Set(prompts.keys());
  const now = new Set(event.prompts.map((prompt) => prompt.prompt_id));
  for (const id of before) if (!now.has(id)) prompts.delete(id);
  for (const prompt of event.prompts) prompts.set(prompt.prompt_id, prompt);
  waiting.clear();
  for (const prompt of event.waiting || []) waiting.set(prompt.prompt_id, prompt);
  sessions.clear();
  for (const session of event.sessions) sessions.set(session.session_id, session);
  tell({ kind: "hello", host: event.host, version: event.version, setup: event.setup, shell: event.shell, fresh: event.prompts.filter((p) => !before.has(p.prompt_id)) });
}

function keepSession(session) {
  if (session.state === "active") sessions.set(session.session_id, session);
  else sessions.delete(session.session_id);
  if (session.state !== "active") dropWaiting(session.session_id);
}

function dropWaiting(sessionId) {
  for (const [id, prompt] of waiting) if (prompt.session_id === sessionId) waiting.delete(id);
}

// A prompt as the hub has it now; `heard` is a receipt that came with it.
export function learn(prompt, heard = null) {
  learnNames(prompt.names);
  if (OPEN.has(prompt.state)) {
    dropWaiting(prompt.session_id);
    prompts.set(prompt.prompt_id, prompt);
    return;
  }
  if (prompt.state === "expired") waiting.set(prompt.prompt_id, prompt); else waiting.delete(prompt.prompt_id);
  const seen = prompts.delete(prompt.prompt_id);
  const at = settled.findIndex((item) => item.prompt.prompt_id === prompt.prompt_id);
  if (!seen && at < 0 && !mine.has(prompt.prompt_id)) return;
  const before = at >= 0 ? settled.splice(at, 1)[0] : { sentence: "", stage: "" };
  const { sentence, stage, audit_head: head } = heard && !overtaken(heard.stage, before.stage) ? heard : { ...before, audit_head: before.head };
  settled.unshift({ prompt, sentence, stage, head });
  settled.length = Math.min(settled.length, KEEP);
}

export const changed = () => tell({ kind: "prompt" });
