// The page for administration: lists and forms over /api/v1.  Every text is shown as text.
"use strict";

const find = (name) => document.querySelector(name);
const when = (at) => (at ? at.slice(0, 16).replace("T", " ") : "never");
const path = (...parts) => parts.map(encodeURIComponent).join("/");

function say(text, bad) {
  find("#state").textContent = text;
  find("#state").className = bad ? "bad" : "";
}

function add(parent, kind, text, given = {}) {
  const made = document.createElement(kind);
  made.textContent = text ?? "";
  Object.assign(made, given);
  parent.append(made);
  return made;
}

async function ask(method, where, body) {
  const options = { method, credentials: "same-origin" };
  if (body !== undefined) Object.assign(options, { body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  const answer = await fetch(`/api/v1/${where}`, options).catch(() => null);
  const found = await answer?.json().catch(() => null);
  if (answer?.ok && found) return found;
  throw new Error(found?.message ?? "The server did not answer. Whether this was done is not known: reload the page.");
}

async function attempt(work) {
  try {
    say("…");
    say((await work()) ?? "done");
  } catch (error) {
    say(error.message, true);
  }
}

function sure(question) {
  const dialog = find("#sure");
  dialog.querySelector("p").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => { dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }); });
}

// What is shown once stays until the person closes it, whatever the page draws meanwhile.
function showOnce(about, text) {
  find("#once p").textContent = about;
  find("#once pre").textContent = text;
  find("#once").showModal();
}

// A row's button: asks back, does it, and draws the section again.
function button(cell, label, question, work) {
  add(cell, "button", label, { type: "button", className: "refuses" }).addEventListener("click", async () => {
    if (await sure(question)) await attempt(async () => { await work(); await draw(); });
  });
}

function table(parent, columns, rows, empty) {
  if (!rows.length) return add(parent, "p", empty);
  const made = add(parent, "table");
  const head = add(add(made, "thead"), "tr");
  for (const column of columns) add(head, "th", column, { scope: "col" });
  const body = add(made, "tbody");
  for (const cells of rows) {
    const line = add(body, "tr");
    for (const cell of cells) {
      const shown = add(line, "td", typeof cell === "function" ? "" : cell);
      if (typeof cell === "function") cell(shown);
    }
  }
  return made;
}

// `fields`: [name, label, kind or choices]; `work` gets what was filled in, and what it returns is said.
function form(parent, title, fields, work) {
  const made = add(parent, "form");
  add(made, "h3", title);
  for (const [name, label, kind = "text", value = ""] of fields) {
    const wrap = add(made, "label", `${label} `);
    if (Array.isArray(kind)) {
      const list = add(wrap, "select", "", { name });
      for (const choice of kind) add(list, "option", choice, { value: choice });
    } else if (kind === "area") add(wrap, "textarea", value, { name, rows: 16, cols: 80, spellcheck: false });
    else add(wrap, "input", "", { name, type: kind, ...(kind === "checkbox" ? {} : { value, autocomplete: "off" }) });
  }
  add(made, "button", title);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(fields.map(([name, , kind]) => [name, kind === "checkbox" ? made.elements[name].checked : made.elements[name].value.trim()]));
    await attempt(async () => {
      const said = await work(given);
      await draw();
      return said;
    });
  });
}

const SECTIONS = {
  Machines: async (main) => {
    const { machines } = await ask("GET", "machines");
    const state = (one) => (one.held ? `waits for a word: ${one.held}` : one.connected ? "connected" : `not heard of since ${when(one.seen_at)}`);
    table(main, ["name", "state", "open", "version", "audit log", "notice", ""], machines.map((one) => [one.name, state(one), one.open_prompts, one.version, one.log_fault || "as anchored", one.rules_fault || one.notice, (cell) => {
      if (one.held === "restored") button(cell, "Accept the restore", `Was ${one.name} put back to an earlier state on purpose?`, () => ask("POST", `machines/${path(one.machine_id)}/accept-restore`));
      button(cell, "Revoke", `Remove ${one.name} from the fleet? Its key is worth nothing afterwards.`, () => ask("DELETE", `machines/${path(one.machine_id)}`));
    }]), "No machine has joined yet.");
    add(main, "h2", "Invitations");
    const { invitations } = await ask("GET", "invitations");
    table(main, ["by", "made", "until", "for", "uses left", ""], invitations.map((one) => [one.by, when(one.made_at), when(one.until), one.name || "any machine", one.uses_left, (cell) => button(cell, "Revoke", "Take this invitation back?", () => ask("DELETE", `invitations/${path(one.invitation_id)}`))]), "There are none.");
    form(main, "Invite a machine", [["name", "Name (empty: any)"], ["minutes", "Minutes", "number", "60"], ["uses", "Uses", "number", "1"], ["ephemeral", "Ephemeral", "checkbox"]], async (given) => {
      const { address } = await ask("POST", "invitations", { ...given, minutes: Number(given.minutes), uses: Number(given.uses) });
      showOnce("Run this on the machine. The address is shown once:", `atlasbridge fleet join '${address}'`);
    });
  },
  People: async (main) => {
    const { people } = await ask("GET", "people");
    table(main, ["name", "role", "teams", "identities", ""], people.map((one) => [one.name, one.role, one.teams.join(", "), one.identities.join(", "), (cell) => {
      add(cell, "button", "Link", { type: "button" }).addEventListener("click", () => attempt(async () => {
        const { url } = await ask("POST", "people/link", { name: one.name });
        showOnce(`For ${one.name}: valid once, for a quarter of an hour.`, url);
      }));
      button(cell, "Remove", `Remove ${one.name}, and log them out everywhere?`, () => ask("POST", "people/remove", { name: one.name }));
    }]), "Nobody yet.");
    form(main, "Add a person", [["name", "Name"], ["role", "Role", ["member", "admin"]]], async (given) => { await ask("POST", "people", given); });
    form(main, "Change a team", [["team", "Team"], ["person", "Person"], ["what", "", ["add", "remove"]]], async ({ team, person, what }) => { await ask("POST", what === "add" ? "teams" : "teams/remove", { team, person }); });
  },
  Rights: async (main) => {
    const { people } = await ask("GET", "people");
    const rights = new Map(people.flatMap((one) => one.rights.map((right) => [JSON.stringify(right), right])));
    table(main, ["who", "allowed to", "machine", "folder", ""], [...rights.values()].map((one) => [one.holder, one.may, one.machine, one.folder, (cell) => button(cell, "Take back", `Take this right from ${one.holder}?`, () => ask("POST", "rights/remove", { holder: one.holder, machine: one.machine, folder: one.folder }))]), "Administrators can do everything; nobody else is allowed anything yet.");
    form(main, "Allow", [["holder", "Person or @team"], ["machine", "Machine", "text", "*"], ["folder", "Folder", "text", "*"], ["may", "To", ["answer", "see"]]], async (given) => { await ask("POST", "rights", given); });
  },
  Rules: async (main) => {
    const { text, by, digest } = await ask("GET", "rules");
    add(main, "p", digest ? `${digest.slice(0, 19)}, set by ${by}.` : "No rules have been set for all machines.");
    form(main, "Send to all machines", [["text", "As policy.toml", "area", text]], async (given) => { await ask("PUT", "rules", given); });
  },
  Logins: async (main) => {
    const [{ logins }, { tokens }] = [await ask("GET", "logins"), await ask("GET", "tokens")];
    table(main, ["person", "device", "since", "last used", "until", ""], logins.map((one) => [one.person, one.this ? `${one.name} (this one)` : one.name, when(one.made_at), when(one.seen_at), when(one.until), (cell) => button(cell, "End", `End this login of ${one.person}?`, () => ask("DELETE", `logins/${path(one.login_id)}`))]), "Nobody is logged in.");
    add(main, "h2", "API tokens");
    table(main, ["name", "scope", "since", ""], tokens.map((one) => [one.name, one.scope, when(one.created_at), (cell) => button(cell, "Revoke", `Revoke the token ${one.name}?`, () => ask("DELETE", `tokens/${path(one.token_id)}`))]), "There are none.");
    form(main, "Make a token of yours", [["name", "Name"], ["scope", "Scope", ["read", "ask", "answer", "admin"]]], async (given) => showOnce("The token is shown once:", (await ask("POST", "tokens", given)).token));
  },
  Audit: async (main) => {
    const { entries } = await ask("GET", "audit?limit=200");
    const rest = ({ seq, ts, at, event, hash, prev, prev_hash, ...more }) => JSON.stringify(more);
    table(main, ["number", "when", "event", "what"], entries.map((one) => [one.seq, when(one.ts ?? one.at), one.event, rest(one)]), "The log is empty.");
  },
};

let allowed = [];
let drawing = 0; // of two that overlap the newer one stays

async function draw() {
  const mine = drawing += 1;
  const name = allowed.find((one) => `#${one}` === location.hash) ?? allowed[0];
  const main = document.createElement("main");
  main.id = "main";
  add(main, "h2", name);
  await SECTIONS[name](main);
  if (mine !== drawing) return;
  find("#main").replaceWith(main);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function start() {
  const me = await ask("GET", "me");
  allowed = me.scope === "admin" ? Object.keys(SECTIONS) : ["Logins"];
  for (const name of allowed) { add(find("#sections"), "a", name, { href: `#${name}` }); find("#sections").append(" "); }
  addEventListener("hashchange", () => attempt(draw));
  await draw();
  return me.identity.replace("server:", "");
}

attempt(start);
