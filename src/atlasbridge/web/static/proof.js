// This browser's key, and proofs by it.  Used by the page and by its service worker, so it is a plain script.
// The key is made at the login, kept where scripts can use but not read it, and is never sent.  Before anything is sent to the
// hub, the hub proves that it has the same key: whoever else listens at this address learns nothing it could use.
(() => {
  const text = new TextEncoder();
  const HMAC = { name: "HMAC", hash: "SHA-256" };
  const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const unhex = (word) => Uint8Array.from(word.match(/[0-9a-f]{2}/g) || [], (pair) => parseInt(pair, 16));
  const random = () => hex(crypto.getRandomValues(new Uint8Array(16)));
  const importKey = (raw) => crypto.subtle.importKey("raw", raw, HMAC, false, ["sign"]);
  const mac = (key, ...parts) => crypto.subtle.sign("HMAC", key, text.encode(parts.join("\n")));
  const proof = async (key, ...parts) => hex(await mac(key, ...parts));
  const digest = async (body) => hex(await crypto.subtle.digest("SHA-256", text.encode(body)));
  let held = null; // where the browser keeps nothing, the login lasts as long as the page

  class Fault extends Error {
    constructor(kind, message) {
      super(message);
      this.kind = kind; // "offline", "out" (not let in), "stranger" (not our hub)
    }
  }

  function store(mode, work) {
    return new Promise((resolve, reject) => {
      const opening = indexedDB.open("atlasbridge", 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("device");
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const base = opening.result;
        const asked = work(base.transaction("device", mode).objectStore("device"));
        asked.onsuccess = () => { base.close(); resolve(asked.result); };
        asked.onerror = () => { base.close(); reject(asked.error); };
      };
    });
  }

  async function device() {
    if (!held) held = (await store("readonly", (box) => box.get("this")).catch(() => null)) || null;
    return held;
  }

  async function keep(entry) {
    held = entry;
    await store("readwrite", (box) => (entry ? box.put(entry, "this") : box.delete("this"))).catch(() => {});
  }

  // The language of answers is the page's own; the service worker has the browser's.
  const spoken = () => (globalThis.document ? { "Accept-Language": document.documentElement.lang } : {});

  async function ask(path, options = {}) {
    try {
      return await fetch(`/api/v1${path}`, { cache: "no-store", redirect: "error", ...options, headers: { ...spoken(), ...options.headers } });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Fault("offline", "The hub cannot be reached.");
    }
  }

  // Makes the hub prove that it knows this key; returns the name of its present start.
  async function greet(key, who) {
    const challenge = random();
    const answer = await ask(`/hello?who=${encodeURIComponent(who)}&challenge=${challenge}`);
    if (answer.status === 401) throw new Fault("out", "The hub does not know this browser, or no longer knows it.");
    if (!answer.ok) throw new Fault("offline", "The hub cannot be reached.");
    const said = await answer.text().catch(() => { throw new Fault("offline", "The connection broke."); });
    let epoch, given;
    try { ({ epoch, proof: given } = JSON.parse(said)); } catch { /* whatever this is, it is no proof */ }
    if (typeof epoch !== "string" || given !== await proof(key, "hub", challenge, epoch, who)) {
      throw new Fault("stranger", "Something else answers at this address. Nothing was sent to it.");
    }
    return { epoch, challenge };
  }

  async function signature(entry, epoch, method, path, body) {
    const target = new URL(`/api/v1${path}`, self.location.href);
    const sum = await digest(body || "");
    return `${epoch}.${sum}.${await proof(entry.key, "page", epoch, method, target.pathname + target.search, sum)}`;
  }

  // One request, signed for the hub that has just proved itself.
  async function send(entry, epoch, method, path, content, more = {}) {
    const body = content === undefined ? undefined : JSON.stringify(content);
    const headers = { "X-AtlasBridge-Proof": await signature(entry, epoch, method, path, body), ...more.headers };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return ask(path, { method, headers, body, signal: more.signal });
  }

  // An answer by a button of a push message.
  async function reply(promptId, body) {
    const entry = await device();
    const { epoch } = await greet(entry.key, entry.login_id);
    return send(entry, epoch, "POST", `/prompts/${promptId}/reply`, body);
  }

  async function enterByLink(link) {
    const [id, secret] = link.split(".");
    const raw = unhex(secret || "");
    if (!id || raw.length !== 32) throw new Fault("out", "This link is incomplete.");
    const key = await importKey(raw);
    const { epoch, challenge } = await greet(key, id).catch((error) => {
      throw error.kind === "out" ? new Fault("out", "This link was used already or has expired. For a new one, run: atlasbridge web") : error;
    });
    const body = { link: id, challenge, epoch, proof: await proof(key, "page", challenge, epoch, id) };
    const answer = await enter(body);
    const own = await importKey(await mac(key, "device", challenge, epoch));
    if (answer.proof !== await proof(own, "hub", challenge, epoch, answer.login_id)) throw new Fault("stranger", "The hub could not prove itself.");
    await keep({ login_id: answer.login_id, name: answer.name, scope: answer.scope, key: own });
  }

  async function enterByPassword(password) {
    const answer = await enter({ password });
    await keep({ login_id: answer.login_id, name: answer.name, scope: answer.scope, key: await importKey(unhex(answer.key)) });
  }

  async function enter(body) {
    const answer = await ask("/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const content = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Fault("out", content.message || `Refused (${answer.status}).`);
    return content;
  }

  globalThis.AtlasProof = { Fault, device, keep, greet, send, proof, random, reply, enterByLink, enterByPassword };
})();
