// Settings of this browser, and the login.

import { post, setKey } from "/api.js";
import { el, show, toast } from "/dom.js";
import { askPermission, beep, setPush, setWant, subscribed, wants } from "/notify.js";

function toggle(id, title, about, on, change) {
  const box = el("input", { type: "checkbox", id });
  box.checked = on;
  box.addEventListener("change", async () => {
    try { await change(box.checked); } catch (error) { box.checked = !box.checked; toast(error.message); }
  });
  return { box, node: el("div", { cls: "switch" }, el("label", { for: id }, title, el("small", {}, about)), box) };
}

export function settingsView(main, page) {
  const notify = toggle("s-notify", "Notifications", "While this page is open somewhere in this browser.", wants("notify"), async (on) => {
    if (on && !(await askPermission())) throw new Error("The browser was not allowed to show notifications.");
    setWant("notify", on);
  });
  const sound = toggle("s-sound", "Sound", "Two soft tones when a program asks.", wants("sound"), (on) => { setWant("sound", on); if (on) beep(); });
  const push = toggle("s-push", "Push", "Also when the page is closed. The message is encrypted for this browser; the push service cannot read it.", false, setPush);
  subscribed().then((on) => { push.box.checked = on; }, () => {});
  const leave = el("button", { type: "button", cls: "refuse", on: { click: async () => {
    await post("/logout").catch(() => {});
    setKey("");
    window.location.reload();
  } } }, "Log this browser out");
  show(main, el("div", { cls: "head" }, el("h1", {}, "Settings")), el("div", { cls: "stack" },
    el("section", { cls: "panel" }, notify.node, sound.node, push.node),
    el("section", { cls: "panel stack" }, el("h2", {}, "Keys"), el("p", {}, el("kbd", {}, "1"), " to ", el("kbd", {}, "9"), " choose, ", el("kbd", {}, "y"), " and ", el("kbd", {}, "n"), " answer, ", el("kbd", {}, "Tab"), " moves between prompts.")),
    el("section", { cls: "panel row" }, el("small", { cls: "grow" }, `AtlasBridge ${page.version} on ${page.host}`), leave)));
  return () => {};
}

export function loginView(main, reason, done) {
  const field = el("input", { type: "password", id: "pass", autocomplete: "current-password" });
  const word = el("div", { cls: "word bad", role: "alert", hidden: !reason }, reason);
  const enter = async () => {
    const value = field.value.trim();
    const link = /#link=([\w-]+)/.exec(value);
    try { await login(link ? { link: link[1] } : { password: value }); done(); } catch (error) { word.hidden = false; word.textContent = error.message; }
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") enter(); });
  show(main, el("div", { cls: "panel stack login" }, el("h1", {}, "Open this page by a link"),
    el("p", {}, "On the computer where your programs run, type ", el("code", {}, "atlasbridge web"), ". It shows a link and a code to scan; each lets one browser in, once."),
    word, el("div", {}, el("label", { for: "pass" }, "Or paste the link, or enter the password"), el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
      el("button", { type: "button", cls: "main", on: { click: enter } }, "Enter")))));
}

export async function login(body) {
  const { key } = await post("/login", body);
  setKey(key);
}
