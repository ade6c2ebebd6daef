// A fleet server in the place of a hub, for the page and its service worker: a cookie says who sends.
(() => {
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  function send(method, path, body) {
    const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    return fetch(`/api/v1${path}`, { method, credentials: "same-origin", cache: "no-store", ...content });
  }

  globalThis.AtlasProof = { random, send, reply: (promptId, body) => send("POST", `/prompts/${promptId}/reply`, body) };
})();
