// The service worker: shows push messages, brings the page to the front, and keeps the page's own files for when the
// hub is away.  It never keeps a prompt: answers of the API are not touched here.
const CACHE = "atlasbridge-shell";
const FILES = ["/", "/base.css", "/page.css", "/main.js", "/icon.svg"];

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin || url.pathname.startsWith("/api/")) return;
  event.respondWith(fetchFirst(event.request));
});

async function fetchFirst(request) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(request, answer.clone());
    return answer;
  } catch (error) {
    const kept = await cache.match(request);
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener("push", (event) => {
  const message = event.data ? event.data.json() : {};
  const title = String(message.title || "A program is waiting for you");
  event.waitUntil(self.registration.showNotification(title, {
    body: String(message.body || ""),
    tag: String(message.prompt_id || "atlasbridge"),
    icon: "/icon-192.png",
    requireInteraction: true,
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.matchAll({ type: "window" }).then((pages) =>
    pages.length ? pages[0].focus() : self.clients.openWindow("/#prompts")));
});
