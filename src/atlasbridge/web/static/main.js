// Begins the page: the login, the live stream, and which view is shown.

import { enter as logIn, follow, isLink, linkIn, load, views } from "/api.js";
import { el, toast } from "/dom.js";
import { loadLanguage, t } from "/words.js";
import { setLink, subscribe, take } from "/model.js";
import { renew, startTelling, worker } from "/notify.js";
import { promptsView } from "/prompts.js";
import { loginView, settingsView } from "/settings.js";

const VIEWS = { prompts: promptsView, prompt: promptsView, list: promptsView, settings: settingsView };
const OTHERS = [...views, "session"].filter((name) => name !== "prompts"); // by others.js, once the first card can be drawn
const PARENTS = { session: "sessions", prompt: "prompts", list: "prompts" };
const OUT = () => t("This browser is not logged in: its login was ended, or another program answers at this address.");
const STRANGER = () => t("Another program, not your hub, answers at this address. Nothing was sent to it. On the computer, run: atlasbridge hub status");
const SILENT_MS = 4000; // after this time without a word the page says that it is not connected
const main = document.getElementById("main");
const link = document.getElementById("link");
const tabs = document.getElementById("tabs");
const page = { host: "", version: "", enrol: "" };
const wide = window.matchMedia("(min-width: 1000px)");
/** @type {(() => void) & { go?: (id: string, name: string) => void }} */
let leave = () => {};
let shown = null;
let stop = () => {};
let entered = false;
let fetching = null;

// The other views are fetched as soon as the hub has proved itself, not when somebody opens one: by then, something else
// might listen at this address.
function fetchOthers() {
  fetching ||= import("/others.js").then((others) => { Object.assign(VIEWS, others); }, () => { fetching = null; toast(t("The other views could not be loaded. Reload the page.")); });
  return fetching;
}

function route() {
  if (!entered) return;
  const [name, id] = window.location.hash.slice(1).split("/");
  if (OTHERS.includes(name) && !VIEWS[name]) { fetchOthers().then(() => VIEWS[name] && route()); return; }
  const known = Object.hasOwn(VIEWS, name) ? name : "prompts";
  const same = VIEWS[known] === shown && leave.go;
  shown = VIEWS[known];
  if (same) same(id, known);
  else {
    leave();
    leave = shown(main, page, id, known);
  }
  for (const tab of tabs.children) {
    const here = tab.getAttribute("href") === `#${PARENTS[known] || known}`;
    if (here) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  if (!same || !wide.matches) window.scrollTo(0, 0);
}

function state(now) {
  link.dataset.state = now === "live" ? "live" : "lost";
  link.textContent = { live: t("live"), lost: t("not connected"), out: t("logged out"), stranger: t("not your hub") }[now] || now;
  setLink(now);
  if (now === "live" && !entered) enter(false);
  if (now === "out") out(OUT());
  if (now === "stranger") out(STRANGER());
}

function out(reason) {
  const again = reason ? () => { stop(); enter(); } : null;
  if (!entered && reason && main.querySelector(".login")) return;
  entered = false;
  leave();
  leave = () => {};
  shown = null;
  tabs.hidden = true;
  if (!reason) { link.dataset.state = "lost"; link.textContent = t("logged out"); }
  loginView(main, reason, () => { stop(); enter(); }, again);
}

function enter(begin = true) {
  entered = true;
  tabs.hidden = false;
  if (begin) stop = follow("/events", take, state);
  setTimeout(() => { if (entered && link.dataset.state === "off") state("lost"); }, SILENT_MS);
  route();
}

function newShell() {
  toast(t("A new version of this page is ready."));
  document.getElementById("toasts").lastElementChild?.append(" ", el("button", { type: "button", on: { click: () => window.location.reload() } }, t("Reload")));
}

async function begin() {
  await loadLanguage();
  subscribe((change) => {
    if (change.kind === "notice") toast(change.sentence);
    if (change.kind !== "hello") return;
    Object.assign(page, { host: change.host, version: change.version, setup: change.setup || "" });
    document.getElementById("host").textContent = change.host;
    renew(change.shell, newShell);
    setTimeout(fetchOthers, 300); // the first card first
  });
  startTelling();
  worker();
  window.addEventListener("hashchange", route);
  for (const tab of tabs.querySelectorAll("a")) tab.hidden = !views.includes(tab.getAttribute("href").slice(1));
  const given = isLink(window.location.hash) ? linkIn(window.location.hash) : null;
  let fault = "";
  if (given) {
    page.enrol = given.enrol;
    window.history.replaceState(null, "", page.enrol ? "/#settings" : "/#prompts");
    try { await logIn(given); } catch (error) { fault = error.message; }
  }
  if (!(await load())) return out(fault);
  if (fault) toast(fault);
  return enter();
}

begin();
