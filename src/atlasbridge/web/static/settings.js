// Settings of this browser, the browsers that are let in, and the login.

import { call, enter, forget, get, howToEnter, linkIn, logOut, may, me, offers, rename } from "/api.js";
import { PLAIN, el, show, toast } from "/dom.js";
import { ago, chooseLanguage, chosenLanguage, moment, t } from "/words.js";
import { askPermission, beep, setPush, setWant, subscribed, wants } from "/notify.js";
import { passkeyPanel } from "/passkey.js";

function toggle(id, title, about, on, change) {
  const box = el("input", { type: "checkbox", id });
  box.checked = on;
  box.addEventListener("change", async () => {
    try { await change(box.checked); } catch (error) { box.checked = !box.checked; toast(error.message); }
  });
  return { box, node: el("div", { cls: "switch" }, el("label", { for: id }, title, el("small", {}, about)), box) };
}

export function settingsView(main, page) {
  const notify = toggle("s-notify", t("Notifications"), t("While this page is open in this browser."), wants("notify"), async (on) => {
    if (on && !(await askPermission())) throw new Error(t("The browser is not allowed to show notifications."));
    setWant("notify", on);
  });
  const sound = toggle("s-sound", t("Sound"), t("Two soft tones when a program asks."), wants("sound"), (on) => { setWant("sound", on); if (on) beep(); });
  const push = toggle("s-push", t("Push"), t("Also when the page is closed. The message is encrypted for this browser; the push service cannot read it."), false, setPush);
  subscribed().then((on) => { push.box.checked = on; }, () => {});
  const leave = el("button", { type: "button", cls: "refuse", on: { click: async () => {
    await setPush(false).catch(() => {});
    await logOut().catch(() => {});
    await forget();
    window.location.reload();
  } } }, t("Log this browser out"));
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Settings"))), el("div", { cls: "stack" },
    languagePanel(), el("section", { cls: "panel" }, notify.node, sound.node, may("answer") && offers("push") ? push.node : null),
    offers("devices") ? thisBrowser() : null, may("answer") && offers("passkey") ? passkeyPanel(page.enrol) : null, may("admin") ? devices() : null,
    el("section", { cls: "panel stack" }, el("h2", {}, t("Keys")), el("p", {}, t("1 to 9 choose; y and n answer; j and k move through the list; / filters it; x selects a prompt."))),
    el("section", { cls: "panel row" }, el("small", { cls: "grow" }, `AtlasBridge ${page.version} · ${page.host}. ${page.setup || ""}`), leave)));
  return () => {};
}

function languagePanel() {
  const names = [["", t("Same as the browser")], ["en", "English"], ["de", "Deutsch"], ["es", "Español"], ["ja", "日本語"]];
  const field = el("select", { id: "s-language", on: { change: () => { chooseLanguage(field.value); window.location.reload(); } } }, ...names.map(([tag, name]) => el("option", { value: tag, ...(tag ? { lang: tag } : {}) }, name)));
  field.value = chosenLanguage();
  return el("section", { cls: "panel row" }, el("label", { for: "s-language", cls: "grow" }, t("Language")), field);
}

function thisBrowser() {
  const field = el("input", { type: "text", id: "own-name", maxlength: 40, ...PLAIN });
  field.value = me().name;
  const save = async () => {
    try { await rename(field.value); field.value = me().name; toast(t("Renamed.")); } catch (error) { toast(error.message); }
  };
  const may = { read: t("This browser can view prompts and sessions."), answer: t("This browser can answer prompts."), admin: t("This browser can answer prompts, type, start and end sessions, and log in other browsers.") }[me().scope];
  return el("section", { cls: "panel stack" }, el("h2", {}, t("This browser")), el("small", {}, `${t("Answers from here are signed with this name.")} ${may}`),
    el("div", {}, el("label", { for: "own-name" }, t("Name")), el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
      el("button", { type: "button", on: { click: save } }, t("Rename")))));
}

function devices() {
  const list = el("ul", { cls: "list", id: "devices" });
  async function draw() {
    const { devices: found } = await get("/devices").catch(() => ({ devices: [] }));
    show(list, found.map((device) => el("li", { cls: "item", "data-device": device.login_id }, el("div", { cls: "row" },
      el("div", {}, el("strong", {}, device.name), device.this ? el("span", { cls: "tag good" }, t("this one")) : null, el("span", { cls: "tag" }, device.scope),
        el("br"), el("small", { title: moment(device.seen_at) }, t("last seen {seen}, logged in {made}", { seen: ago(device.seen_at), made: ago(device.created_at) }))),
      device.this ? null : el("button", { type: "button", cls: "refuse", on: { click: () => end(device) } }, t("Log out"))))));
  }
  async function end(device) {
    try { await call("DELETE", `/devices/${device.login_id}`); toast(t("{name} is logged out.", { name: device.name })); } catch (error) { toast(error.message); }
    draw();
  }
  draw();
  return el("section", { cls: "panel stack" }, el("h2", {}, t("Logged-in browsers")), list);
}

export function loginView(main, reason, done, again) {
  const field = el("input", { type: "password", id: "pass", autocomplete: "current-password" });
  const word = el("div", { cls: "word bad", role: "alert", hidden: !reason }, reason);
  const tryIt = async () => {
    const value = field.value.trim();
    try { await enter(linkIn(value) || { password: value }); done(); } catch (error) { word.hidden = false; word.textContent = error.message; }
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") tryIt(); });
  show(main, el("div", { cls: "panel stack login" }, el("h1", {}, t("Log in with a link")),
    el("p", {}, howToEnter()[0], el("code", {}, howToEnter()[1])),
    word, again ? el("div", {}, el("button", { type: "button", on: { click: again } }, t("Try again"))) : null,
    el("div", {}, el("label", { for: "pass" }, t("Or paste the link, or enter the password")), el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
      el("button", { type: "button", cls: "main", on: { click: tryIt } }, t("Log in"))))));
}
