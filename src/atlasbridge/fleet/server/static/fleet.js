// The fleet's page: open prompts of all machines, answered here, decided there.  Every text is shown as text.
"use strict";

const find = (name) => document.querySelector(name);
const pages = { shown: 50 };
const told = new Map(); // what became of an answer, by prompt, so that a redraw keeps it

async function ask(path, given) {
  const options = given === undefined ? {} : { method: "POST", body: JSON.stringify(given), headers: { "content-type": "application/json" } };
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  const body = await answer.json().catch(() => ({ ok: false, message: "The server did not answer." }));
  return { status: answer.status, ...body };
}

function say(text, bad) {
  find("#state").textContent = text;
  find("#state").className = bad ? "bad" : "";
}

function add(parent, kind, text, className) {
  const made = document.createElement(kind);
  made.textContent = text ?? "";
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function ago(at) {
  if (!at) return "never";
  const seconds = Math.max(0, Math.round((Date.now() - new Date(at)) / 1000));
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  return `${seconds} s ago`;
}

function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function decide(prompt, value, asText) {
  const name = `${prompt.machine_id}/${prompt.prompt_id}`;
  const request = { machine: prompt.machine_id, prompt: prompt.prompt_id, value, as_text: asText, key: key() };
  told.set(name, { text: `“${value}” is on its way to ${prompt.machine} …` });
  draw();
  told.set(name, await outcomeOf(request, name));
  await load();
}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });
const GATEWAY = [502, 503, 504]; // a proxy, or a server without its database: what became of it is not known

// Sends it once.  Where its answer is lost, the server is asked by the key until it is known what became of it.
async function outcomeOf(request, name) {
  let answer = await ask("/api/decide", request).catch(() => ({ status: 0 }));
  while (answer.status === 0 || GATEWAY.includes(answer.status)) {
    told.set(name, { text: `It is not known yet whether “${request.value}” arrived. Asking …`, className: "bad" });
    draw();
    await pause(1000);
    answer = await ask(`/api/outcome?key=${encodeURIComponent(request.key)}`).catch(() => ({ status: 0 }));
  }
  if (answer.arrived === false) return { text: "Your answer did not arrive. Answer again.", className: "bad" };
  const good = answer.ok && (!answer.settled || answer.accepted);
  return { text: answer.message, className: good ? "good" : "bad", over: good && answer.settled && answer.stage !== "voted" };
}

function choicesOf(prompt) {
  const body = prompt.body;
  if (body.constraints?.multi_select) return [];
  if (body.choices?.length) return body.choices.map((choice) => ({ value: choice.value, label: /^\d+$/.test(choice.value) ? `${choice.value}. ${choice.label}` : choice.label, refuses: choice.refuses, always: choice.always }));
  if (body.type === "yes_no") return [{ value: "n", label: "No", refuses: true }, { value: "y", label: "Yes" }];
  if (body.type === "confirm_enter") return [{ value: "enter", label: "Press Enter" }];
  return [];
}

function card(prompt) {
  const made = find("#card").content.firstElementChild.cloneNode(true);
  const part = (name) => made.querySelector(name);
  const body = prompt.body;
  const said = told.get(`${prompt.machine_id}/${prompt.prompt_id}`);
  const where = [prompt.machine, prompt.label || prompt.tool, prompt.folder, ago(prompt.raised_at)].filter(Boolean);
  part(".where").textContent = where.join(" · ") + (prompt.connected ? "" : ` · not heard of since ${ago(prompt.seen_at)}`);
  made.classList.toggle("silent", !prompt.connected);
  const subject = body.subject?.text;
  const question = body.question || body.excerpt;
  part(".question").textContent = subject && !question.includes(subject) ? `${subject}\n\n${question}` : question;
  part(".cut").hidden = body.whole !== false;
  if (body.agreed?.length) { part(".votes").hidden = false; part(".votes").textContent = `Agreed so far: ${body.agreed.join(", ")}`; }
  const busy = prompt.deciding || said?.over;
  const locked = busy || !prompt.may_answer || body.constraints?.secret;
  for (const choice of choicesOf(prompt)) {
    const button = add(part(".choices"), "button", choice.label, choice.refuses ? "refuses" : choice.always ? "always" : "");
    button.disabled = Boolean(locked);
    let sure = !choice.always; // what holds for ever is asked back
    button.addEventListener("click", () => {
      if (sure) decide(prompt, choice.value, false);
      else { sure = true; button.textContent = `Tap again: ${choice.label}`; }
    });
  }
  const free = body.type === "free_text" || body.constraints?.allows_other || body.constraints?.multi_select || body.type === "unknown";
  part(".words").hidden = !free || Boolean(locked);
  part(".words").addEventListener("submit", (event) => {
    event.preventDefault();
    decide(prompt, part(".words input").value, body.type === "free_text");
  });
  part(".told").textContent = said?.text ?? (prompt.deciding ? `${prompt.deciding} has answered; the machine has not said anything yet.` : prompt.may_answer ? "" : "You may see this, not answer it.");
  part(".told").className = `told ${said?.className ?? ""}`;
  part(".look").hidden = !prompt.screens || !prompt.connected;
  part(".look").addEventListener("click", () => look(prompt));
  return made;
}

let known = { prompts: [], total: 0 };
const STEADY_MS = 350; // a tap this soon after the list moved was meant for what stood there before
const drawn = new Map(); // by prompt: its card, and what it was drawn from
let movedAt = -Infinity;
let held = false; // a finger or a mouse button is down: nothing moves until it is up
let pressed = null; // the button on which it went down, and where that stood

const place = (button) => { const box = button.getBoundingClientRect(); return `${box.left},${box.top}`; };

// A card that says the same stays the same element at the same place; what has changed is drawn anew where it stands.
function draw() {
  const typed = document.activeElement?.closest?.(".words");
  if (held || (typed && typed.querySelector("input").value)) return; // not under a finger, and not while somebody writes
  const box = find("#prompts");
  const before = [...box.children].map((one) => one.dataset.key).join();
  const wanted = known.prompts.map((prompt) => {
    const name = `${prompt.machine_id}/${prompt.prompt_id}`;
    const from = JSON.stringify([{ ...prompt, seen_at: prompt.connected ? "" : prompt.seen_at }, told.get(name)]);
    const there = drawn.get(name);
    if (there?.from === from) return there.node;
    const node = card(prompt);
    node.dataset.key = name;
    if (there?.node.isConnected) { there.node.replaceWith(node); movedAt = performance.now(); }
    drawn.set(name, { node, from });
    return node;
  });
  for (const [name, { node }] of drawn) if (!wanted.includes(node)) { node.remove(); drawn.delete(name); }
  wanted.forEach((node, at) => { if (box.children[at] !== node) box.insertBefore(node, box.children[at] || null); });
  if (before !== [...box.children].map((one) => one.dataset.key).join()) movedAt = performance.now();
  find("#total").textContent = known.total === 1 ? "1 question waits" : `${known.total} questions wait`;
  find("#more").hidden = known.prompts.length >= known.total;
}

// Only a press that went down and up on the same button at the same place answers; keys and assistive tools press without one.
function guardTaps() {
  addEventListener("pointerdown", (event) => {
    held = true;
    const button = event.target.closest?.("#prompts button");
    pressed = button && { button, at: place(button), early: performance.now() - movedAt < STEADY_MS };
  }, true);
  const up = () => { held = false; setTimeout(draw, 0); };
  addEventListener("pointerup", up, true);
  addEventListener("pointercancel", () => { pressed = null; up(); }, true);
  addEventListener("click", (event) => {
    const button = event.target.closest?.("#prompts button");
    if (!button || event.detail === 0) return;
    const meant = pressed && pressed.button === button && !pressed.early && pressed.at === place(button);
    pressed = null;
    if (!meant) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);
}

async function load() {
  const filters = new URLSearchParams(new FormData(find("#filters")));
  filters.set("limit", String(pages.shown));
  const found = await ask(`/api/prompts?${filters}`);
  if (found.status === 401) return showLogin();
  if (!found.ok) return say(found.message, true);
  known = found;
  draw();
  return loadRest();
}

async function loadRest() {
  const { machines = [] } = await ask("/api/machines");
  const select = find("#filters select");
  const names = machines.map((machine) => machine.name);
  for (const option of [...select.options].slice(1)) if (!names.includes(option.value)) option.remove();
  for (const name of names) if (![...select.options].some((option) => option.value === name)) select.append(new Option(name, name));
  if (!find("#rest").open) return;
  const rows = machines.map((machine) => row([machine.name, machine.open_prompts, machine.connected ? "connected" : ago(machine.seen_at), machine.version, machine.policy_fault || machine.policy.slice(0, 15), machine.log_fault || "as anchored"], machine.log_fault));
  find("#machines tbody").replaceChildren(...rows);
  const by = encodeURIComponent(find("#by").value);
  const { decisions = [] } = await ask(`/api/history?person=${by}`);
  find("#history tbody").replaceChildren(...decisions.map((one) => row([ago(one.made_at), one.machine, one.excerpt, one.value, one.person, one.sentence || "under way"], one.ok === false)));
}

function row(cells, bad) {
  const made = document.createElement("tr");
  for (const cell of cells) add(made, "td", String(cell ?? ""));
  if (bad) made.className = "bad";
  return made;
}

function look(prompt) {
  const dialog = find("#screen");
  const source = new EventSource(`/api/screen?machine=${encodeURIComponent(prompt.machine_id)}&session=${encodeURIComponent(prompt.session_id)}`);
  dialog.querySelector("pre").textContent = "…";
  source.onmessage = (event) => {
    const screen = JSON.parse(event.data);
    dialog.querySelector("pre").textContent = screen ? screen.lines.join("\n") : "The machine does not show it.";
  };
  dialog.addEventListener("close", () => source.close(), { once: true });
  dialog.showModal();
}

function showLogin() {
  say("You are not logged in.", true);
  const link = add(find("#state"), "a", " Log in");
  link.href = "/login";
  for (const name of ["#filters", "#rest", "#logout", "#more"]) find(name).hidden = true;
  find("#prompts").replaceChildren();
}

function follow() {
  const source = new EventSource("/api/events");
  source.addEventListener("changed", load);
  source.onopen = () => say("connected");
  source.onerror = () => say("The server cannot be reached; trying again …", true);
}

async function start() {
  guardTaps();
  const token = new URLSearchParams(location.hash.slice(1)).get("login");
  if (token) {
    history.replaceState(null, "", "/");
    const entered = await ask("/api/login", { token });
    if (!entered.ok) say(entered.message, true);
  }
  const me = await ask("/api/me");
  if (!me.ok) return showLogin();
  find("#person").textContent = me.person;
  for (const name of ["#filters", "#rest", "#logout"]) find(name).hidden = false;
  find("#filters").addEventListener("input", load);
  find("#rest").addEventListener("toggle", loadRest);
  find("#by").addEventListener("input", loadRest);
  find("#more").addEventListener("click", () => { pages.shown += 50; load(); });
  find("#logout").addEventListener("click", async () => { await ask("/api/logout", {}); location.reload(); });
  return follow();
}

start();
