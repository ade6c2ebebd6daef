// The service worker: shows push messages, answers by their buttons, and keeps the page's own files.  The page is always
// begun from the kept files, and they are renewed only when the hub has proved itself to the page: whoever else listens at
// this address cannot put another page in its place so.  It never keeps a prompt: answers of the API are not touched here.
const SHELL = "atlasbridge-shell";
const FILES = ["/", "/answering.js", "/api.js", "/app.webmanifest", "/audit.js", "/base.css", "/card.js", "/colours.js", "/de.json", "/dom.js", "/es.json", "/figures.js",
  "/grants.js", "/icon-192.png", "/icon-512.png", "/icon.svg", "/inbox.js", "/ja.json", "/keys.js", "/language.js", "/later.js", "/launch.js", "/main.js", "/model.js",
  "/notify.js", "/others.js", "/page.css", "/passkey.js", "/prompts.js", "/proof.js", "/queue.js", "/records.js", "/rules.css", "/rules.js", "/screen.js", "/session.js", "/sessions.js",
  "/settings.js", "/steady.js", "/subject.js", "/typing.js", "/ways.js", "/words.js"];

const policy = self.trustedTypes?.createPolicy("atlasbridge", { createScriptURL: (url) => { if (url !== "/proof.js") throw new TypeError(url); return url; } });
importScripts(policy ? policy.createScriptURL("/proof.js") : "/proof.js");
const { device, greet, send, random } = self.AtlasProof;

const fill = async () => (await caches.open(SHELL)).addAll(FILES.map((path) => new Request(path, { cache: "no-cache" })));

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
  if (event.data?.renew) event.waitUntil(renew(String(event.data.renew), event.ports[0]));
});

async function renew(wanted, port) {
  const cache = await caches.open(SHELL);
  const mark = await cache.match("/shell");
  const before = mark ? await mark.text() : "";
  if (before === wanted) return;
  await fill();
  await cache.put("/shell", new Response(wanted));
  if (before) port?.postMessage("new");
}

self.addEventListener("push", (event) => {
  const message = event.data ? event.data.json() : {};
  event.waitUntil(tell(message));
});

async function tell(message) {
  const settled = message.kind === "settled";
  await self.registration.showNotification(String(message.title || "A program is waiting for you"), {
    body: String(message.body || ""),
    tag: String(message.tag || "atlasbridge"),
    icon: "/icon-192.png",
    silent: settled || Boolean(message.silent),
    requireInteraction: !settled && !message.silent,
    actions: (message.actions || []).map(({ action, title }) => ({ action, title: String(title) })),
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
async function answer(data, { value, title }) {
  let words = `“${title}” could not be sent. Open the page.`;
  try {
    const entry = await device();
    const { epoch } = await greet(entry.key, entry.login_id);
    const body = { value, as_text: false, session_id: data.session || "", request_key: random() };
    const told = await send(entry, epoch, "POST", `/prompts/${data.tag}/reply`, body);
    const content = await told.json();
    words = told.ok ? `“${title}”: ${content.message}` : `“${title}” was not used: ${content.message}`;
  } catch (error) { words = `It is not known whether “${title}” arrived. ${error.message || ""}`; }
  await self.registration.showNotification("AtlasBridge", { body: words, tag: String(data.tag), icon: "/icon-192.png", data: { url: data.url } });
}
