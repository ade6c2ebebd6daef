// Talks to the hub: requests, and live streams that come back by themselves.
// The cookie is the browser's half of the login; this page's own storage keeps the other half, which no other port can read.

const KEY = "atlasbridge-key";
const QUIET_MS = 40000; // the hub says something at least every 15 s
const keep = (() => { try { return window.localStorage; } catch { return null; } })();
let key = keep?.getItem(KEY) || "";

export const hasKey = () => key !== "";

export function setKey(value) {
  key = value;
  if (value) keep?.setItem(KEY, value); else keep?.removeItem(KEY);
}

export class Refused extends Error {
  constructor(status, error, message) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

function request(method, path, body, signal) {
  const headers = { "X-AtlasBridge-Key": key };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
}

export async function call(method, path, body) {
  let answer;
  try {
    answer = await request(method, path, body);
  } catch {
    throw new Refused(0, "offline", "The hub cannot be reached. Nothing was sent.");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, content.error || "", content.message || `Refused (${answer.status}).`);
  return content;
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

// Follows a stream until close() is called.  onState gets "live", "lost" or "out" (not logged in any more).
export function follow(path, onEvent, onState = () => {}) {
  let open = true;
  let tries = 0;
  let control = new AbortController();
  let wake = () => {};

  async function run() {
    while (open) {
      const state = await once();
      if (!open) return;
      onState(state);
      if (state === "out" || state === "gone") return;
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, Math.min(8000, 400 * 2 ** tries++)); });
    }
  }

  async function once() {
    control = new AbortController();
    let watchdog = setTimeout(() => control.abort(), QUIET_MS);
    try {
      const answer = await request("GET", path, undefined, control.signal);
      if (answer.status === 401) return "out";
      if (answer.status === 404) return "gone";
      if (!answer.ok) return "lost";
      onState("live");
      tries = 0;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "lost";
        clearTimeout(watchdog);
        watchdog = setTimeout(() => control.abort(), QUIET_MS);
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) if (part.startsWith("data: ")) onEvent(JSON.parse(part.slice(6)));
      }
    } catch {
      return "lost";
    } finally {
      clearTimeout(watchdog);
    }
  }

  const hurry = () => { if (document.visibilityState === "visible") { tries = 0; wake(); } };
  window.addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  run();
  return () => {
    open = false;
    control.abort();
    wake();
    window.removeEventListener("online", hurry);
    document.removeEventListener("visibilitychange", hurry);
  };
}
