// Times, folders and states as people say them.

let skew = 0; // the hub's clock minus ours, in milliseconds

export function setServerTime(text) {
  skew = Date.parse(text) - Date.now();
}

export const serverNow = () => Date.now() + skew;

export function left(expiresAt) {
  return Math.max(0, (Date.parse(expiresAt) - serverNow()) / 1000);
}

export function clock(seconds) {
  const whole = Math.ceil(seconds);
  if (whole >= 5940) return `${Math.round(whole / 3600)}h`;
  if (whole >= 600) return `${Math.round(whole / 60)}m`;
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export function ago(text) {
  const seconds = Math.max(0, (serverNow() - Date.parse(text)) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(text).toLocaleDateString();
}

export const moment = (text) => (text ? new Date(text).toLocaleString() : "");

export function folder(path) {
  const parts = String(path || "").split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : String(path || "");
}

export const short = (id) => String(id || "").slice(0, 8);

export const CONFIDENCE = { high: ["sure", "good"], med: ["likely", ""], low: ["a guess", "warn"] };

export const STATE = {
  created: "open", routed: "open", awaiting_reply: "open", reply_received: "answered", injected: "typed",
  resolved: "taken", expired: "expired", canceled: "left alone", failed: "failed", withdrawn: "no longer asked",
};

let own = () => "";
export const setOwnName = (teller) => { own = teller; };

export const OPEN = new Set(["created", "routed", "awaiting_reply"]);

const names = new Map(); // identity -> the one name of that person
export const learnNames = (known) => { for (const [identity, name] of Object.entries(known || {})) names.set(identity, name); };

export function by(identity) {
  if (!identity) return "";
  if (names.has(identity)) return names.get(identity);
  const [channel, name] = [identity.split(":")[0], identity.slice(identity.indexOf(":") + 1)];
  if (channel === "web") return name.startsWith("token/") ? `the token ${name.slice(6)}` : name === own() ? `${name} (this browser)` : name;
  if (identity === "auto:timeout") return "the timer";
  if (channel === "cli") return "the command line";
  return identity.includes(":") ? `${channel} (${name})` : identity;
}
