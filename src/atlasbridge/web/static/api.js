// Talks to the hub: requests, and live streams that come back by themselves.  Who signs and who must prove: proof.js.

import "/proof.js";
import { readAnswer, Refused } from "/refused.js";
import { setOwnName, t } from "/words.js";

const { Fault, device, enterByLink, enterByPassword, greet, keep, proof, random, send } = globalThis.AtlasProof;
const QUIET_MS = 40000; // the hub says something at least every 15 s
const KNOWN_MS = 5000; // a read may use a proof this old; what changes something asks for a new one
let known = { epoch: "", at: -Infinity };
let who = null;

export const me = () => who || { name: "", scope: "read", login_id: "" };
const SCOPES = ["read", "ask", "answer", "admin"];
export const may = (scope) => SCOPES.indexOf(me().scope) >= SCOPES.indexOf(scope);
export const newKey = random;
export const views = ["prompts", "sessions", "history", "audit", "rules", "figures"];
/** @param {string} what */
export const offers = (what) => Boolean(what); // a fleet server offers less
export const howToEnter = () => [t("On the computer where your programs run, run this command. It shows a link and a code to scan; each logs in one browser, once: "), "atlasbridge web"];
setOwnName(() => me().name);

export async function load() {
  who = await device();
  return who !== null;
}

export const logOut = () => post("/logout");

// The link in an address that a person opened or pasted.
export const linkIn = (hash) => { const found = /#link=([\w.-]+)(?:&enrol=(\w+))?/.exec(hash); return found ? { link: found[1], enrol: found[2] || "" } : null; };
export const isLink = (hash) => /^#link=[\w.-]+(?:&enrol=\w+)?$/.test(hash);

/** @param {{ link?: string, password?: string }} given */
export async function enter({ link, password }) {
  if (!globalThis.crypto?.subtle) throw new Error(t("This browser stores no keys for this address. Open the page over https or on localhost."));
  await (link ? enterByLink(link) : enterByPassword(password)).catch((error) => { throw new Error(t(error.message)); });
  await load();
}

export async function forget() {
  await keep(null);
  who = null;
}

export async function rename(name) {
  const answer = await call("PUT", "/me", { name });
  await keep({ ...who, name: answer.name });
  who = await device();
}

async function start(fresh) {
  if (fresh || performance.now() - known.at > KNOWN_MS) {
    const { epoch } = await greet(who.key, who.login_id);
    known = { epoch, at: performance.now() };
  }
  return known.epoch;
}

export async function call(method, path, body) {
  let answer;
  try {
    const epoch = await start(method !== "GET");
    answer = await send(who, epoch, method, path, body);
    if (answer.status === 401 && method === "GET") answer = await send(who, await start(true), method, path, body);
  } catch (error) {
    if (error instanceof Fault && error.kind !== "offline") throw new Refused(401, error.kind, t(error.message));
    throw new Refused(0, "offline", t("The hub cannot be reached."));
  }
  return readAnswer(answer);
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

// Follows a stream until close() is called.  onState gets "live", "lost", "out" (not let in), "stranger" or "gone" (no such
// thing there).  A stream that is "gone" is tried again while `patient()` says so.
/** @param {(state: string) => void} onState */
export function follow(path, onEvent, onState = () => {}, patient = () => false) {
  let open = true;
  let tries = 0;
  let control = new AbortController();
  /** @type {(value?: unknown) => void} */
  let wake = () => {};

  async function run() {
    while (open) {
      const state = await once();
      if (!open) return;
      const wait = state === "gone" && patient();
      if (!wait) onState(state);
      if (state === "gone" && !wait) return;
      const pause = state === "out" || state === "stranger" ? 8000 : wait ? 300 : Math.min(8000, 400 * 2 ** tries++);
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, pause); });
    }
  }

  async function once() {
    control = new AbortController();
    let watchdog = setTimeout(() => control.abort(), QUIET_MS);
    const alive = () => { clearTimeout(watchdog); watchdog = setTimeout(() => control.abort(), QUIET_MS); };
    try {
      const { epoch } = await greet(who.key, who.login_id);
      known = { epoch, at: performance.now() };
      const challenge = random();
      const answer = await send(who, epoch, "GET", path, undefined, { signal: control.signal, headers: { "X-AtlasBridge-Challenge": challenge } });
      if (answer.status === 401) return "lost"; // it began anew between the two: ask again
      if (answer.status === 404) return "gone";
      if (!answer.ok) return "lost";
      return await read(answer, async (event) => event.event !== "hello"
        || event.proof === await proof(who.key, "hub", challenge, epoch, who.login_id), alive);
    } catch (error) {
      return error instanceof Fault && error.kind !== "offline" ? error.kind : "lost";
    } finally {
      clearTimeout(watchdog);
    }
  }

  async function read(answer, isOurs, alive) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let live = false;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "lost";
      alive();
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").find((line) => line.startsWith("data: "));
        const event = data ? JSON.parse(data.slice(6)) : null;
        if (event && !(await isOurs(event))) return "stranger";
        if (!live) { live = true; tries = 0; onState("live"); }
        if (event && open) onEvent(event);
      }
    }
  }

  const hurry = () => { if (document.visibilityState === "visible") { tries = 0; wake(); } };
  // A page that was left is kept by the browser for "back", with its connections; there are six in all for one hub.
  const hangUp = () => control.abort();
  window.addEventListener("online", hurry);
  window.addEventListener("pageshow", hurry);
  window.addEventListener("pagehide", hangUp);
  document.addEventListener("visibilitychange", hurry);
  run();
  return () => {
    open = false;
    control.abort();
    wake();
    window.removeEventListener("online", hurry);
    window.removeEventListener("pageshow", hurry);
    window.removeEventListener("pagehide", hangUp);
    document.removeEventListener("visibilitychange", hurry);
  };
}
