// The fleet server in the place of a hub: the same page over the server's own requests.  A cookie says who calls; prompts
// and sessions of all machines come by one stream that says when to read them again.

import "/proof.js";
import { readAnswer, Refused } from "/refused.js";
import { setOwnName, t } from "/words.js";

const { random, send } = globalThis.AtlasProof;
const SCOPES = ["read", "ask", "answer", "admin"];
let who = null;

export const me = () => who || { name: "", scope: "read", login_id: "" };
export const may = (scope) => scope !== "admin" && SCOPES.indexOf(me().scope) >= SCOPES.indexOf(scope);
export const views = ["prompts", "sessions", "machines"];
export const offers = (what) => ["push", "passkey"].includes(what); // a hub does more for its own sessions
export const newKey = random;
setOwnName(() => me().name);

export async function call(method, path, body) {
  const answer = await send(method, path, body).catch(() => { throw new Refused(0, "offline", t("The server cannot be reached.")); });
  return readAnswer(answer);
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

export async function load() {
  try {
    const told = await get("/me");
    who = { name: told.identity.replace(/^server:/, ""), scope: told.scope, login_id: told.device?.login_id || "" };
  } catch (error) { who = error.status === 0 ? who : null; }
  return who !== null;
}

export async function forget() { who = null; }
export const rename = () => Promise.reject(new Error(t("The fleet's administrator names people.")));
export const logOut = () => post("/logout");
export function howToEnter() {
  const how = document.createElement("span");
  const login = document.createElement("a");
  login.href = "/login";
  login.textContent = t("Log in");
  how.append(login, t(", or ask an administrator for a link: "));
  return [how, "atlasbridge fleet people link NAME"];
}

export const linkIn = (hash) => { const found = /#login=([\w.~-]+)/.exec(hash); return found ? { link: found[1], enrol: "" } : null; };
export const isLink = (hash) => /^#login=[\w.~-]+$/.test(hash);

export async function enter({ link }) {
  if (!link) throw new Error(t("This link is incomplete."));
  await post("/login", { link });
  await load();
}

// Follows prompts and sessions, or one session's screen, until close() is called.  A hub's page also passes how long it waits
// for a session that has just been started; nothing is started here.
/** @param {(state: string) => void} onState @param {() => boolean} [_patient] */
export function follow(path, onEvent, onState = () => {}, _patient = undefined) {
  const source = new EventSource(`/api/v1${path}`);
  let [known, reading, again, shell, version] = [new Map(), false, false, "", ""];

  async function read() {
    again = reading;
    if (reading) return;
    reading = true;
    try {
      const [{ prompts, now }, { sessions }] = await Promise.all([get("/prompts?limit=200"), get("/sessions")]);
      const open = new Map(prompts.map((prompt) => [prompt.prompt_id, { ...prompt, machine: prompt.session?.machine }]));
      const gone = [...known.keys()].filter((id) => !open.has(id)).slice(0, 20);
      const over = await Promise.all(gone.map((id) => get(`/prompts/${id}`).catch(() => null)));
      for (const prompt of over.filter(Boolean)) onEvent({ event: "prompt.closed", prompt: { ...prompt, machine: prompt.session?.machine } });
      const asked = new Map(prompts.map((prompt) => [prompt.session_id, prompt.prompt_id]));
      onEvent({ event: "hello", now, host: window.location.host, version, shell, prompts: [...open.values()], waiting: [],
        sessions: sessions.map((session) => ({ ...session, open_prompt: asked.get(session.session_id) || "" })) });
      known = open;
      onState("live");
    } catch (error) { onState(error.status === 401 ? "out" : "lost"); }
    reading = false;
    if (again) read();
  }

  if (path !== "/events") {
    source.onmessage = (event) => { onState("live"); onEvent(JSON.parse(event.data)); };
    source.onerror = () => onState(source.readyState === EventSource.CLOSED ? "gone" : "lost");
  } else {
    source.addEventListener("changed", (event) => { ({ shell, version } = JSON.parse(event.data)); read(); });
    source.onerror = () => (source.readyState === EventSource.CLOSED ? read() : onState("lost"));
  }
  return () => source.close();
}
