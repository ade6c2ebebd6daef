// The language of this page, and times, folders and states as people say them.

import "/texts.js";

// null where this browser keeps nothing for this page
/** @param {"localStorage" | "sessionStorage"} where */
export const stored = (where) => { try { return window[where]; } catch { return null; } };

let skew = 0; // the hub's clock minus ours, in milliseconds

export function setServerTime(text) {
  skew = Date.parse(text) - Date.now();
}

const serverNow = () => Date.now() + skew;

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
  if (seconds < 45) return t("just now");
  if (seconds < 5400) return t("{count} min ago", { count: Math.round(seconds / 60) });
  if (seconds < 129600) return t("{count} h ago", { count: Math.round(seconds / 3600) });
  return new Date(text).toLocaleDateString(language());
}

// In the reader's own zone, and so that it says which.
export const moment = (text) => (text ? new Date(text).toLocaleString(language(), { dateStyle: "medium", timeStyle: "short" }) : "");
export const time = (text) => (text ? new Date(text).toLocaleTimeString(language(), { hour: "2-digit", minute: "2-digit" }) : "");

export function folder(path) {
  const parts = String(path || "").split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : String(path || "");
}

export const nameOf = (prompt) => prompt.session?.label || prompt.session?.tool || t("A program");

export const short = (id) => String(id || "").slice(0, 8);

export const CONFIDENCE = () => ({ high: [t("sure"), "good"], med: [t("likely"), ""], low: [t("a guess"), "warn"] });

const states = () => ({
  created: t("open"), routed: t("open"), awaiting_reply: t("open"), reply_received: t("answered"), injected: t("typed"),
  resolved: t("taken"), expired: t("expired"), canceled: t("left alone"), failed: t("failed"), withdrawn: t("no longer asked"),
});
export const stateName = (state) => states()[state] || state;

let own = () => "";
export const setOwnName = (teller) => { own = teller; };

export const OPEN = new Set(["created", "routed", "awaiting_reply"]);

const names = new Map(); // identity -> the one name of that person
export const learnNames = (known) => { for (const [identity, name] of Object.entries(known || {})) names.set(identity, name); };

export function by(identity) {
  if (!identity) return "";
  if (names.has(identity)) return names.get(identity);
  const [channel, name] = [identity.split(":")[0], identity.slice(identity.indexOf(":") + 1)];
  if (channel === "web") return name.startsWith("token/") ? t("the token {name}", { name: name.slice(6) }) : name === own() ? t("{name} (this browser)", { name }) : name;
  if (identity === "auto:timeout") return t("the timer");
  if (channel === "cli") return t("the command line");
  return identity.includes(":") ? `${channel} (${name})` : identity;
}

// The language of this page: what a person chose here, else what the browser asks for.

export const { label: labelText, t, use: useTexts } = globalThis.AtlasTexts;
const { choose, load } = globalThis.AtlasTexts;
const keep = stored("localStorage");

export const chosenLanguage = () => keep?.getItem("atlasbridge-language") || "";
export const language = () => choose(chosenLanguage());

export function chooseLanguage(tag) {
  if (tag) keep?.setItem("atlasbridge-language", tag); else keep?.removeItem("atlasbridge-language");
}

// Before the first view is drawn.
export async function loadLanguage() {
  if (!(await load(language()))) return;
  document.documentElement.lang = language();
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-text]"))) node.textContent = t(node.dataset.text);
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-label]"))) node.setAttribute("aria-label", t(node.dataset.label));
}
