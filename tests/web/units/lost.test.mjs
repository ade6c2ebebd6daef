// What the page and its service worker say when it is not known what became of an answer, for a hub's page and for a fleet's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const told = (status, body) => new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
const PROXY = [[502, "<h1>Bad gateway</h1>"], [504, { message: "upstream timed out" }], [524, { error: "origin_timeout" }], [500, {}],
  [503, { error: "unknown", message: "It is not known whether this was taken." }]];
const PROMPT = { prompt_id: "p1", session_id: "s1", state: "awaiting_reply", constraints: {}, answer: null };
let network = [];
const sent = [];
globalThis.send = (...words) => {
  const at = words.findIndex((word) => ["GET", "POST"].includes(word));
  sent.push(words.slice(at));
  return Promise.resolve(network.shift()());
};
const line = { set textContent(_) {} }; // what is read aloud
globalThis.document = { querySelector: () => line, getElementById: () => line, documentElement: { lang: "en" } };
const realTimeout = globalThis.setTimeout;
globalThis.setTimeout = (work) => realTimeout(work, 0);
const { give } = await import("/answering.js");
const { load, offers } = await import("/api.js");
network = [() => told(200, { identity: "server:", scope: "answer" })]; // a fleet's page asks who it is
await load();

for (const [status, body] of PROXY) {
  test(`after ${status} the page asks by the same key, and tells what it hears`, async () => {
    sent.length = 0;
    const answered = { ...PROMPT, state: "resolved", answer: { by: "web:", label: "Yes" } };
    network = [() => told(status, body), () => told(status, body), () => told(200, { arrived: true, refused: false, message: "Typed.", prompt: answered })];
    const said = [];
    assert.equal(await give(PROMPT, { value: "y", label: "Yes" }, (sentence) => said.push(sentence)), true);
    assert.match(said[1], /does not know yet/);
    assert.equal(said.at(-1), "Typed.");
    const [, , { request_key: key }] = sent[0];
    assert.ok(sent.slice(1).every(([method, path]) => method === "GET" && path.endsWith(`request_key=${key}`)));
  });
}

test("a refusal is told as one", async () => {
  network = [() => told(409, { error: "not_open", message: "Ada answered first." })];
  const said = [];
  assert.equal(await give(PROMPT, { value: "y", label: "Yes" }, (sentence) => said.push(sentence)), false);
  assert.equal(said.at(-1), "Ada answered first.");
});

test("what a rule wants signed is refused without a passkey, at a fleet's page too", async () => {
  const done = () => told(200, { stage: "typed", message: "Refused it.", prompt: { ...PROMPT, state: "resolved" } });
  network = [...(offers("passkey") ? [() => told(200, { needed: false })] : []), done];
  const said = [];
  assert.equal(await give({ ...PROMPT, constraints: { proof: { rule: "r" } } }, { value: "n", label: "No" }, (sentence) => said.push(sentence)), true);
  assert.equal(said.at(-1), "Refused it.");
});

// Taps a button of a message; returns what is shown in its place, and the keys under which it was sent.
async function tap(...answers) {
  const heard = {};
  const keys = [];
  let shown = "";
  const self = {
    addEventListener: (name, work) => { heard[name] = work; },
    registration: { showNotification: async (_, { body }) => { shown = body; } },
    AtlasProof: { random: () => "k1", reply: async (_, { request_key: key }) => { keys.push(key); return answers.shift()(); } },
    AtlasTexts: { choose: () => "en", label: (_, english) => english, load: async () => {}, t: (text, values = {}) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]) },
  };
  const caches = { open: async () => ({ match: async () => undefined }) };
  vm.runInNewContext(readFileSync(`${process.env.ATLAS_PAGE}/sw.js`, "utf8"), { self, caches, setTimeout: globalThis.setTimeout, importScripts: () => {} });
  let over;
  heard.notificationclick({ action: "yes", notification: { close: () => {}, data: { tag: "p1", actions: [{ action: "yes", value: "y", title: "Yes" }] } }, waitUntil: (work) => { over = work; } });
  await over;
  return { shown, keys };
}
const breaks = () => { throw new Error("The hub cannot be reached."); };

test("a button whose answer was lost is sent again under its key", async () => {
  const { shown, keys } = await tap(() => told(...PROXY[0]), breaks, () => told(200, { message: "Typed." }));
  assert.equal(shown, "“Yes”: Typed.");
  assert.deepEqual(keys, ["k1", "k1", "k1"]);
});

for (const [status, body] of PROXY) {
  test(`a button that only ever hears ${status} is not said to be unused`, async () => {
    const { shown } = await tap(...Array(4).fill(() => told(status, body)));
    assert.match(shown, /^AtlasBridge does not know whether “Yes” arrived\./);
  });
}

test("a button that was refused says so", async () => {
  const { shown } = await tap(() => told(409, { message: "Ada answered first." }));
  assert.equal(shown, "“Yes” was not used: Ada answered first.");
});
