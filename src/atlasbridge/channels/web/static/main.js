// Begins the page: the login, the live stream, and which view is shown.

import { follow, hasKey, setKey } from "/api.js";
import { toast } from "/dom.js";
import { subscribe, take } from "/model.js";
import { startTelling, worker } from "/notify.js";
import { promptsView } from "/prompts.js";
import { auditView, figuresView, historyView } from "/records.js";
import { sessionView, sessionsView } from "/sessions.js";
import { login, loginView, settingsView } from "/settings.js";

const VIEWS = { prompts: promptsView, sessions: sessionsView, session: sessionView, history: historyView, audit: auditView, figures: figuresView, settings: settingsView };
const main = document.getElementById("main");
const link = document.getElementById("link");
const tabs = document.getElementById("tabs");
const page = { host: "", version: "" };
let leave = () => {};
let entered = false;

function route() {
  if (!entered) return;
  const [name, id] = window.location.hash.slice(1).split("/");
  const known = Object.hasOwn(VIEWS, name) ? name : "prompts";
  leave();
  leave = VIEWS[known](main, page, id);
  for (const tab of tabs.children) {
    const here = tab.getAttribute("href") === `#${known === "session" ? "sessions" : known}`;
    if (here) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  window.scrollTo(0, 0);
}

function state(now) {
  link.dataset.state = now === "live" ? "live" : "lost";
  link.textContent = { live: "live", lost: "not connected", out: "logged out" }[now];
  if (now === "out") out("This browser is not logged in (any more).");
}

function out(reason) {
  entered = false;
  setKey("");
  leave();
  tabs.hidden = true;
  loginView(main, reason, enter);
}

function enter() {
  entered = true;
  tabs.hidden = false;
  follow("/events", take, state);
  route();
}

async function begin() {
  subscribe((change) => {
    if (change.kind === "notice") toast(change.sentence);
    if (change.kind !== "hello") return;
    Object.assign(page, { host: change.host, version: change.version });
    document.getElementById("host").textContent = change.host;
  });
  startTelling();
  worker();
  window.addEventListener("hashchange", route);
  const given = /^#link=([\w-]+)$/.exec(window.location.hash);
  if (given) {
    window.history.replaceState(null, "", "/#prompts");
    try { await login({ link: given[1] }); } catch (error) { if (!hasKey()) return out(error.message); toast(error.message); }
  }
  return hasKey() ? enter() : out("");
}

begin();
