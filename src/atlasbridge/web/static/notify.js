// Telling the person: browser notifications, push, a sound, the number in the title.  Each is this browser's own choice.

import { call, get, post } from "/api.js";
import { prompts, subscribe } from "/model.js";
import { language, nameOf, stored, t } from "/words.js";

const FLAGS = ["notify", "sound"];
const keep = stored("localStorage");
let audio = null;

export const wants = (flag) => keep?.getItem(`atlasbridge-${flag}`) === "on";

export function setWant(flag, on) {
  if (FLAGS.includes(flag)) keep?.setItem(`atlasbridge-${flag}`, on ? "on" : "off");
}

export async function askPermission() {
  if (!("Notification" in window)) return false;
  return (await Notification.requestPermission()) === "granted";
}

export function beep() {
  audio ||= new AudioContext();
  [[660, 0], [880, 0.16]].forEach(([pitch, after]) => {
    const [tone, volume] = [audio.createOscillator(), audio.createGain()];
    const start = audio.currentTime + after;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.12, start);
    volume.gain.exponentialRampToValueAtTime(0.001, start + 0.3);
    tone.connect(volume).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.32);
  });
}

// The kept files of the page are renewed only once the hub has proved itself; `onNew` is called when they were others.
export async function renew(shell, onNew) {
  if (!shell || !(await worker())) return;
  const registration = await navigator.serviceWorker.ready;
  const channel = new MessageChannel();
  channel.port1.onmessage = ({ data }) => { if (data === "new") onNew(); };
  registration.active.postMessage({ renew: shell, language: language() }, [channel.port2]);
}

let ready = null;

// The service worker's registration; null where the browser has none (or the page is not served safely).
export function worker() {
  ready ||= register().catch(() => null);
  return ready;
}

async function register() {
  const only = (url) => { if (url !== "/sw.js") throw new TypeError(url); return url; };
  const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("atlasbridge", { createScriptURL: only });
  return navigator.serviceWorker.register(policy ? policy.createScriptURL("/sw.js") : "/sw.js");
}

async function announce(prompt) {
  if (wants("sound")) beep();
  if (!wants("notify") || document.visibilityState === "visible" || !("Notification" in window) || Notification.permission !== "granted") return;
  const name = nameOf(prompt);
  const title = prompt.constraints.idle ? t("{name} has finished", { name }) : t("{name} asks", { name });
  const options = { body: prompt.constraints.secret ? t("It asks for a secret.") : prompt.excerpt, tag: prompt.prompt_id, icon: "/icon-192.png", data: { url: `/#prompt/${prompt.prompt_id}` } };
  const registration = await worker();
  if (registration) registration.showNotification(title, options);
  else new Notification(title, options).onclick = () => window.focus();
}

async function takeBack(promptId) {
  const registration = await worker();
  const shown = registration ? await registration.getNotifications({ tag: promptId }).catch(() => []) : [];
  shown.forEach((note) => note.close());
}

export function startTelling() {
  let greeted = false;
  subscribe((change) => {
    const badge = document.getElementById("badge");
    badge.textContent = String(prompts.size);
    badge.hidden = prompts.size === 0;
    document.title = prompts.size ? `(${prompts.size}) AtlasBridge` : "AtlasBridge";
    if (navigator.setAppBadge) (prompts.size ? navigator.setAppBadge(prompts.size) : navigator.clearAppBadge()).catch(() => {});
    if (change.kind === "prompt" && change.event === "prompt.raised" && change.prompt) announce(change.prompt);
    if (change.kind === "hello" && greeted) change.fresh.forEach(announce); // raised while this page was cut off
    if (change.kind === "hello") greeted = true;
    if (change.kind === "prompt" && change.prompt && !prompts.has(change.prompt.prompt_id)) takeBack(change.prompt.prompt_id);
  });
}

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));

export async function subscribed() {
  const registration = await worker();
  return Boolean(registration?.pushManager && (await registration.pushManager.getSubscription()));
}

export async function setPush(on) {
  const registration = await worker();
  if (!registration?.pushManager) throw new Error(t("This browser has no push. On a phone, open the page over TLS and install it first."));
  const before = await registration.pushManager.getSubscription();
  if (!on) {
    if (before) { await call("DELETE", "/push/subscriptions", { endpoint: before.endpoint }); await before.unsubscribe(); }
    return;
  }
  const { available, public_key: key } = await get("/push");
  if (!available) throw new Error(t("Push needs the push extra where the hub or the server runs: in the checkout, pip install '.[push]'"));
  if (!(await askPermission())) throw new Error(t("The browser is not allowed to show notifications."));
  const fresh = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  await post("/push/subscriptions", fresh.toJSON());
}
