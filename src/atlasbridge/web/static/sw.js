// The service worker: shows push messages, answers by their buttons, and keeps the page's own files.  The page is always
// begun from the kept files, and they are renewed only when the hub has proved itself to the page: whoever else listens at
// this address cannot put another page in its place so.  It never keeps a prompt: answers of the API are not touched here.
const SHELL = "atlasbridge-shell";
const SCRIPTS = ["/proof.js", "/texts.js"];
const AGAIN_MS = [500, 1500, 3000];

const policy = self.trustedTypes?.createPolicy("atlasbridge", { createScriptURL: (url) => { if (!SCRIPTS.includes(url)) throw new TypeError(url); return url; } });
importScripts(...SCRIPTS.map((url) => (policy ? policy.createScriptURL(url) : url)));
const { random, reply } = self.AtlasProof;
const { choose, label, load, t } = self.AtlasTexts;

async function fill() {
  const [cache, files] = await Promise.all([caches.open(SHELL), fetch("/files.json", { cache: "no-cache" }).then((answer) => answer.json())]);
  await cache.addAll(files.map((path) => new Request(path, { cache: "no-cache" })));
}

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(fill());
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin || url.pathname.startsWith("/api/")) return;
  event.respondWith(keptFirst(event.request, url));
});

async function keptFirst(request, url) {
  const cache = await caches.open(SHELL);
  return (await cache.match(url.pathname)) || fetch(request);
}

self.addEventListener("message", (event) => {
  if (event.data?.renew) event.waitUntil(renew(String(event.data.renew), String(event.data.language), event.ports[0]));
});

async function renew(wanted, language, port) {
  const cache = await caches.open(SHELL);
  await cache.put("/language", new Response(language));
  const mark = await cache.match("/shell");
  const before = mark ? await mark.text() : "";
  if (before === wanted) return;
  await fill();
  await cache.put("/shell", new Response(wanted));
  if (before) port?.postMessage("new");
}

// The texts of the language that the page was last read in.
async function speak() {
  const cache = await caches.open(SHELL);
  const chosen = await (await cache.match("/language"))?.text();
  await load(choose(chosen), async (path) => (await cache.match(path)) || fetch(path));
}

self.addEventListener("push", (event) => {
  const message = event.data ? event.data.json() : {};
  event.waitUntil(speak().then(() => tell(message)));
});

async function tell(message) {
  const settled = message.kind === "settled";
  const note = message.note ? t(String(message.note), message.values) : "";
  await self.registration.showNotification(message.title ? t(String(message.title), message.values) : t("A program is waiting for you"), {
    body: [String(message.body || ""), note].filter(Boolean).join("\n"),
    tag: String(message.tag || "atlasbridge"),
    icon: "/icon-192.png",
    silent: settled || Boolean(message.silent),
    requireInteraction: !settled && !message.silent,
    actions: (message.actions || []).map(({ action, title, value }) => ({ action, title: label(value, String(title)) })),
    data: { url: String(message.url || "/#prompts"), tag: message.tag, session: message.session_id, actions: message.actions || [] },
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const data = event.notification.data || {};
  const chosen = (data.actions || []).find(({ action }) => action === event.action);
  event.waitUntil(chosen ? answer(data, chosen) : open(data.url));
});

async function open(url) {
  const path = String(url || "/#prompts");
  const pages = await self.clients.matchAll({ type: "window" });
  if (!pages.length) return self.clients.openWindow(path);
  await pages[0].focus();
  return pages[0].navigate(path).catch(() => null);
}

// A button of the message was tapped: what became of it is shown in its place.
async function answer(data, { value, title: named }) {
  await speak();
  const title = label(value, named);
  let words;
  try {
    const told = await insist(data.tag, { value, as_text: false, session_id: data.session || "", request_key: random() });
    const { message } = await told.json();
    if (told.status >= 500) throw new Error(message);
    words = told.ok ? t("“{title}”: {message}", { title, message }) : t("“{title}” was not used: {message}", { title, message });
  } catch (error) { words = `${t("AtlasBridge does not know whether “{title}” arrived.", { title })} ${t(error.message || "")}`; }
  await self.registration.showNotification("AtlasBridge", { body: words, tag: String(data.tag), icon: "/icon-192.png", data: { url: data.url } });
}

// The answer was lost, or a proxy or a server without its database gave one: the same request again is the same reply.
async function insist(tag, body) {
  for (const pause of AGAIN_MS) {
    const told = await reply(tag, body).catch(() => null);
    if (told && told.status < 500) return told;
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  return reply(tag, body);
}
