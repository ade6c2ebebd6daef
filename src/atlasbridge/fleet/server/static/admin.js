// The page for administration: lists and forms over the same requests, parts and texts as the page.

import { call, get, load, me, post } from "/api.js";
import { el, show } from "/dom.js";
import { loadLanguage, moment, t } from "/words.js";

const find = (name) => document.querySelector(name);
const when = (at) => (at ? moment(at) : t("never"));
const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;
const remove = (...parts) => call("DELETE", path(...parts));

function say(text, bad = false) {
  find("#state").textContent = text;
  find("#state").className = bad ? "bad" : "";
  if (bad) find("#state").scrollIntoView({ block: "nearest" }); // the form can be far below
}

async function attempt(work) {
  try {
    say("…");
    say((await work()) ?? t("done"));
  } catch (error) {
    say(error.status === 0 ? `${error.message} ${t("It may or may not have been done: reload the page.")}` : error.message, true);
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

const button = (label, work, cls = "") => el("button", { type: "button", cls, on: { click: work } }, label);

// A row's button: asks back, does it, and draws the section again.
const ending = (label, question, work) => button(label, async () => {
  if (await sure(question)) await attempt(async () => { await work(); await draw(); });
}, "refuse");

function table(columns, rows, empty) {
  if (!rows.length) return el("p", {}, empty);
  const parts = (cell) => (Array.isArray(cell) ? cell : [String(cell ?? "")].filter(Boolean));
  const head = columns.map((column) => el("th", { scope: "col" }, column || el("span", { cls: "unseen" }, t("Action"))));
  const line = (cells) => el("tr", {}, ...cells.map((cell, at) => el("td", { "data-column": columns[at] || undefined }, ...parts(cell))));
  return el("div", { cls: "scroll", tabindex: "0" }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows.map(line))));
}

function field([name, label, kind = "text", value = ""]) {
  if (Array.isArray(kind)) return el("label", {}, label, el("select", { name }, ...kind.map(([choice, shown]) => el("option", { value: choice }, shown))));
  if (kind === "area") return el("label", {}, label, el("textarea", { name, rows: 16, cols: 80, spellcheck: "false" }, value));
  return el("label", {}, label, el("input", { name, type: kind, autocomplete: "off", ...(kind === "checkbox" ? {} : { value }) }));
}

// `fields`: [name, label, kind or choices, value]; `work` gets what was filled in.
function form(title, fields, work) {
  const made = el("form", {}, el("h3", {}, title), ...fields.map(field), el("button", {}, title));
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(fields.map(([name, , kind]) => [name, kind === "checkbox" ? made.elements[name].checked : made.elements[name].value.trim()]));
    await attempt(async () => { await work(given); await draw(); });
  });
  return made;
}

async function machinesPart() {
  const [{ machines }, { invitations }] = await Promise.all([get("/machines"), get("/invitations")]);
  const held = (one) => (one.held === "cloned" ? t("several machines use its key; choose which one continues: {command}", { command: `atlasbridge fleet machines split ${one.name}` }) : t("waits for a decision: {held}", { held: one.held }));
  const state = (one) => (one.held ? held(one) : one.connected ? t("connected") : t("last contact {when}", { when: when(one.seen_at) }));
  const buttons = (one) => [
    one.held === "restored" && ending(t("Accept the restore"), t("Was {name} restored to an earlier state on purpose?", one), () => post(path("machines", one.machine_id, "accept-restore"))),
    ending(t("Revoke"), t("Remove {name} from the fleet? Its key stops working.", one), () => remove("machines", one.machine_id))];
  return [
    table([t("Name"), t("State"), t("Open"), t("Version"), t("Audit log"), t("Notice"), ""], machines.map((one) => [one.name, state(one), one.open_prompts, one.version, one.log_fault || t("verified"), one.rules_fault || one.notice, buttons(one)]), t("No machine has joined yet.")),
    el("h2", {}, t("Invitations")),
    table([t("By"), t("Created"), t("Until"), t("For"), t("Uses left"), ""], invitations.map((one) => [one.by, when(one.made_at), when(one.until), one.name || t("any machine"), one.uses_left, [ending(t("Revoke"), t("Revoke this invitation?"), () => remove("invitations", one.invitation_id))]]), t("None.")),
    form(t("Invite a machine"), [["name", t("Name (empty: any)")], ["minutes", t("Minutes"), "number", "60"], ["uses", t("Uses"), "number", "1"], ["ephemeral", t("Ephemeral"), "checkbox"]], async (given) => {
      const { address } = await post("/invitations", { ...given, minutes: Number(given.minutes), uses: Number(given.uses) });
      showOnce(t("Run this on the machine. The address is shown once:"), `atlasbridge fleet join '${address}'`);
    })];
}

async function peoplePart() {
  const { people } = await get("/people");
  const link = (one) => button(t("Link"), () => attempt(async () => {
    const { url } = await post("/people/link", { name: one.name });
    showOnce(t("For {name}: valid once, for 15 minutes.", one), url);
  }));
  return [
    table([t("Name"), t("Role"), t("Teams"), t("Identities"), ""], people.map((one) => [one.name, one.role, one.teams.join(", "), one.identities.join(", "), [link(one), ending(t("Remove"), t("Remove {name}, and log them out everywhere?", one), () => post("/people/remove", { name: one.name }))]]), t("Nobody yet.")),
    form(t("Add a person"), [["name", t("Name")], ["role", t("Role"), [["member", t("member")], ["admin", t("administrator")]]]], (given) => post("/people", given)),
    form(t("Change a team"), [["team", t("Team")], ["person", t("Person")], ["what", t("Action"), [["add", t("add")], ["remove", t("remove")]]]], ({ team, person, what }) => post(what === "add" ? "/teams" : "/teams/remove", { team, person }))];
}

async function rightsPart() {
  const { people } = await get("/people");
  const rights = new Map(people.flatMap((one) => one.rights.map((right) => [JSON.stringify(right), right])));
  return [
    table([t("Who"), t("Allowed to"), t("Machine"), t("Folder"), ""], [...rights.values()].map(({ holder, may, machine, folder }) => [holder, may, machine, folder, [ending(t("Remove"), t("Remove this right from {holder}?", { holder }), () => post("/rights/remove", { holder, machine, folder }))]]), t("Administrators can do everything. Nobody else has rights yet.")),
    form(t("Allow"), [["holder", t("Person or @team")], ["machine", t("Machine"), "text", "*"], ["folder", t("Folder"), "text", "*"], ["may", t("To"), [["answer", t("answer")], ["see", t("see")]]]], (given) => post("/rights", given))];
}

async function rulesPart() {
  const { text, by, digest } = await get("/rules");
  return [el("p", {}, digest ? t("{digest}, set by {by}.", { digest: digest.slice(0, 19), by }) : t("No rules have been set for all machines.")),
    form(t("Send to all machines"), [["text", t("Contents of policy.toml"), "area", text]], (given) => call("PUT", "/rules", given))];
}

async function loginsPart() {
  const [{ logins }, { tokens }] = await Promise.all([get("/logins"), get("/tokens")]);
  return [
    table([t("Person"), t("Device"), t("Since"), t("Last used"), t("Until"), ""], logins.map((one) => [one.person, one.this ? t("{name} (this one)", one) : one.name, when(one.made_at), when(one.seen_at), when(one.until), [ending(t("End"), t("End this login of {person}?", one), () => remove("logins", one.login_id))]]), t("Nobody is logged in.")),
    el("h2", {}, t("API tokens")),
    table([t("Name"), t("Scope"), t("Since"), ""], tokens.map((one) => [one.name, one.scope, when(one.created_at), [ending(t("Revoke"), t("Revoke the token {name}?", one), () => remove("tokens", one.token_id))]]), t("None.")),
    form(t("Create a token"), [["name", t("Name")], ["scope", t("Scope"), ["read", "ask", "answer", "admin"].map((one) => [one, one])]], async (given) => showOnce(t("The token is shown once:"), (await post("/tokens", given)).token))];
}

async function auditPart() {
  const { entries } = await get("/audit?limit=200");
  const rest = ({ seq, ts, at, event, hash, prev, prev_hash, ...more }) => JSON.stringify(more);
  return [table([t("Number"), t("When"), t("Event"), t("What")], entries.map((one) => [one.seq, when(one.ts ?? one.at), one.event, rest(one)]), t("The log is empty."))];
}

const SECTIONS = { Machines: [() => t("Machines"), machinesPart], People: [() => t("People"), peoplePart], Rights: [() => t("Rights"), rightsPart],
  Rules: [() => t("Rules"), rulesPart], Logins: [() => t("Logins"), loginsPart], Audit: [() => t("Audit"), auditPart] };
let allowed = [];
let drawing = 0; // of two that overlap the newer one stays

async function draw() {
  const mine = drawing += 1;
  const name = allowed.find((one) => `#${one}` === window.location.hash) ?? allowed[0];
  const [title, part] = SECTIONS[name];
  const parts = await part();
  if (mine !== drawing) return;
  show(find("#main"), el("h2", {}, title()), ...parts);
  for (const link of find("#sections").children) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function start() {
  await loadLanguage();
  if (!(await load())) throw new Error(t("This browser is not logged in. Open the page first."));
  allowed = me().scope === "admin" ? Object.keys(SECTIONS) : ["Logins"];
  show(find("#sections"), ...allowed.map((name) => el("a", { href: `#${name}` }, SECTIONS[name][0]())));
  const open = async () => { await draw(); return me().name; };
  window.addEventListener("hashchange", () => attempt(open));
  return open();
}

attempt(start);
