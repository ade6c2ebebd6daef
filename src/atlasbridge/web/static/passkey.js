// Passkeys: enrolling one in this browser, and signing an answer with it.  What has to be signed is the hub's word.

import { call, get, offers, post } from "/api.js";
import { el, show, toast } from "/dom.js";
import { ago, t } from "/words.js";

const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (word) => Uint8Array.from(word.match(/[0-9a-f]{2}/g) || [], (pair) => parseInt(pair, 16));
const keys = (ids) => ids.map((id) => ({ type: /** @type {const} */ ("public-key"), id: bytes(id) }));
const isAddress = (host) => /^[\d.]+$|:/.test(host);

// Why no passkey can be used on this page; "": one can.
function whyNotHere() {
  const { hostname, port } = window.location;
  if (isAddress(hostname.replace(/^\[|\]$/g, ""))) {
    return hostname === "127.0.0.1" || hostname === "[::1]" ? t("You opened this page by its IP address. Browsers allow passkeys only for a name: open {url} instead.", { url: `http://localhost:${port}/` })
      : t("You opened this page by its IP address. Browsers allow passkeys only for a name with https: see docs/howto/phone.md.");
  }
  if (!window.isSecureContext || !navigator.credentials || !window.PublicKeyCredential) return t("This browser does not support passkeys at this address. They need https, or localhost.");
  return "";
}

const refused = (error) => (error.name === "NotAllowedError" || error.name === "AbortError" ? new Error(t("The passkey was not used: it was canceled, or it took too long."))
  : error.name === "InvalidStateError" ? new Error(t("This passkey is already enrolled.")) : error);

async function assertion(challenge, rpId, allowed) {
  /** @type {PublicKeyCredentialRequestOptions} */
  const publicKey = { challenge: bytes(challenge), rpId, allowCredentials: keys(allowed), userVerification: "required", timeout: 120000 };
  const given = /** @type {any} */ (await navigator.credentials.get({ publicKey }).catch((error) => { throw refused(error); }));
  return { key_id: hex(given.rawId), client_data: hex(given.response.clientDataJSON), authenticator_data: hex(given.response.authenticatorData), signature: hex(given.response.signature) };
}

// The signature that this answer needs; undefined where it needs none.
export async function sign(prompt, value, asText) {
  if (!prompt.constraints.proof) return undefined;
  const wanted = await post(`/prompts/${prompt.prompt_id}/challenge`, { value, as_text: asText });
  if (!wanted.needed) return undefined;
  const why = whyNotHere();
  if (why) throw new Error(why);
  return assertion(wanted.challenge, wanted.rp_id, wanted.keys);
}

// With a code from `atlasbridge passkey add`, or else by the word of a passkey that is enrolled.  A fleet's page needs neither:
// each machine decides which of its passkeys count.
export async function enrol(name, code) {
  const why = whyNotHere();
  if (why) throw new Error(why);
  const begun = await post("/passkeys/begin");
  if (offers("code") && !code && !begun.keys.length) throw new Error(t("The first passkey of this page needs a code. On the computer, run: atlasbridge passkey add"));
  const confirm = code || !offers("code") ? undefined : await assertion(begun.challenge, begun.rp_id, begun.keys);
  /** @type {PublicKeyCredentialCreationOptions} */
  const publicKey = {
    challenge: bytes(begun.challenge), rp: { id: begun.rp_id, name: "AtlasBridge" }, user: { id: bytes(begun.user), name: `AtlasBridge at ${begun.rp_id}`, displayName: "AtlasBridge" },
    pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: /** @type {const} */ ("public-key"), alg })), excludeCredentials: keys(begun.keys),
    authenticatorSelection: { userVerification: "required", residentKey: "preferred" }, attestation: "none", timeout: 120000,
  };
  const made = /** @type {any} */ (await navigator.credentials.create({ publicKey }).catch((error) => { throw refused(error); }));
  return post("/passkeys", { challenge: begun.challenge, key_id: hex(made.rawId), client_data: hex(made.response.clientDataJSON), attestation: hex(made.response.attestationObject), name, code: code || "", ...(confirm ? { confirm } : {}) });
}

// On a card: that approving needs a passkey, and why it cannot be used here, where it cannot.
export function proofNote(prompt) {
  const wanted = prompt.constraints.proof;
  if (!wanted) return null;
  const why = whyNotHere();
  return el("p", { cls: `word ${why ? "bad" : "warn"} proof`, role: "status" }, `🔑 ${t("To approve this, sign it with your passkey (rule {rule}).", { rule: wanted.rule })} `, why ? `${why} ${t("You can refuse it here.")}` : t("You can refuse it without one."));
}

// The command that makes a machine accept a passkey of a fleet's page.
const accepting = (key) => (key.accept ? el("details", {}, el("summary", {}, t("Accept it on a machine")),
  el("small", {}, t("On each machine that should accept it, run:")), el("pre", { cls: "accept" }, key.accept)) : null);

// A panel of the settings.  `offered`: a code that came with the link by which this page was opened.
export function passkeyPanel(offered) {
  const list = el("ul", { cls: "list", id: "passkeys" });
  const name = el("input", { type: "text", id: "passkey-name", maxlength: 40, placeholder: t("such as: phone") });
  const code = el("input", { type: "text", id: "passkey-code", maxlength: 64, autocomplete: "off" });
  const word = el("div", { cls: "word", role: "status", hidden: true });
  code.value = offered || "";
  const say = (sentence, tone) => { word.hidden = false; word.className = `word ${tone}`; word.textContent = sentence; };
  async function draw() {
    const { passkeys } = await get("/passkeys").catch(() => ({ passkeys: [] }));
    show(list, passkeys.map((key) => el("li", { cls: "item", "data-passkey": key.key_id }, el("div", { cls: "row" },
      el("div", {}, el("strong", {}, key.name), el("span", { cls: "tag" }, key.rp_id), el("br"), el("small", {}, t("added {time} by {who}", { time: ago(key.created_at), who: key.by })), accepting(key)),
      el("button", { type: "button", cls: "refuse", on: { click: () => remove(key) } }, t("Remove"))))));
  }
  async function remove(key) {
    try { await call("DELETE", `/passkeys/${key.key_id}`); toast(t("{name} can no longer approve anything.", { name: key.name })); } catch (error) { toast(error.message); }
    draw();
  }
  const add = el("button", { type: "button", cls: "main", id: "passkey-add", on: { click: async () => {
    add.disabled = true;
    try { const made = await enrol(name.value, code.value.trim()); say(t("Added {name}.", { name: made.name }), "good"); code.value = ""; draw(); } catch (error) { say(error.message, "bad"); }
    add.disabled = false;
  } } }, t("Add a passkey"));
  draw();
  const why = whyNotHere();
  return el("section", { cls: "panel stack", id: "passkey-panel" }, el("h2", {}, t("Passkeys")),
    el("small", {}, !offers("code") ? t("Where a rule requires a passkey, your approval counts only if you sign it with one that the machine accepts. Add one here, then run its command on each machine.") : t("Where a rule requires a passkey, your approval counts only if you sign it with one of these. To add one, get a code on the computer with: atlasbridge passkey add. A passkey that you already have here can also confirm a new one.")),
    list, why ? el("p", { cls: "word" }, why) : [
      el("div", {}, el("label", { for: "passkey-name" }, t("Name")), name),
      el("div", {}, offers("code") ? el("label", { for: "passkey-code" }, t("Code from the terminal")) : null, el("div", { cls: "row" }, offers("code") ? el("div", { cls: "grow" }, code) : null, add))], word);
}
