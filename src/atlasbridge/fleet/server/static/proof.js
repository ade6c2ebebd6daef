// A fleet server in the place of a hub, for the page and its service worker: a cookie says who sends.
(() => {
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  function send(method, path, body) {
    const spoken = globalThis.document ? { "Accept-Language": document.documentElement.lang } : {}; // the page's own language
    const [content, kind] = body === undefined ? [{}, {}] : [{ body: JSON.stringify(body) }, { "Content-Type": "application/json" }];
    return fetch(`/api/v1${path}`, { method, credentials: "same-origin", cache: "no-store", headers: { ...spoken, ...kind }, ...content });
  }

  globalThis.AtlasProof = { random, send, reply: (promptId, body) => send("POST", `/prompts/${promptId}/reply`, body) };
})();
