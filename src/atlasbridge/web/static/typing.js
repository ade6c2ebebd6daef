// Typing into a session: the switch, the field and the keys for phones, and the real keyboard on the screen itself.

import { may, post } from "/api.js";
import { PLAIN, el, speak, toast } from "/dom.js";
import { KeyStream, encode } from "/keys.js";
import { t } from "/language.js";

const BAR = [["Escape", "Esc"], ["Tab", "Tab"], ["ArrowUp", "↑"], ["ArrowDown", "↓"], ["ArrowLeft", "←"], ["ArrowRight", "→"],
  ["Enter", "Enter"], ["Backspace", "⌫"], ["Home", "Home"], ["End", "End"], ["PageUp", "PgUp"], ["PageDown", "PgDn"], ["Delete", "Del"]];
const CONTROLS = ["c", "d", "z", "l", "r"];
const PASTE = 2004; // the program wants pasted text marked as such

export function typingBar(id, screen) {
  if (!may("admin")) return { node: el("small", {}, t("This browser cannot type into sessions. Make a link that can with: atlasbridge web --scope admin")), off: () => {} };
  const typing = el("input", { type: "checkbox", id: "typing", role: "switch" });
  const line = el("div", { cls: "stack typing", hidden: true });
  const sent = el("small", { role: "status", cls: "sent" });
  let keys = null;
  const send = (data) => { if (keys && data) keys.type(data); };
  const held = el("button", { type: "button", "aria-pressed": "false", on: { click: () => hold(held.getAttribute("aria-pressed") !== "true") } }, "Ctrl");
  const hold = (on) => { held.setAttribute("aria-pressed", String(on)); if (on) field.focus(); };
  const ctrl = () => { const on = held.getAttribute("aria-pressed") === "true"; hold(false); return on; };
  const press = (name, how = {}) => send(encode(name, { ctrl: ctrl(), ...how }, screen.modes));
  const field = el("input", { type: "text", id: "typed", "aria-label": t("Text to type"), placeholder: t("Text to type"), enterkeyhint: "send", ...PLAIN });
  field.addEventListener("input", () => { // the letter after Ctrl is a key of its own
    if (held.getAttribute("aria-pressed") !== "true" || !field.value) return;
    press([...field.value].at(-1));
    field.value = "";
  });
  const submit = (enter) => { send(field.value); if (enter) press("Enter"); field.value = ""; };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); submit(true); } });
  const button = ([name, face]) => el("button", { type: "button", on: { click: () => press(name) } }, face, face === name ? null : el("span", { cls: "unseen" }, ` ${name}`));
  line.append(
    el("div", { cls: "row" }, el("div", { cls: "grow" }, field), el("button", { type: "button", cls: "main", title: t("without Enter"), on: { click: () => submit(false) } }, t("Type"))),
    el("div", { cls: "keybar", role: "group", "aria-label": t("Keys") }, ...BAR.slice(0, 2).map(button),
      el("button", { type: "button", on: { click: () => press("Tab", { shift: true }) } }, "⇧Tab", el("span", { cls: "unseen" }, " Shift-Tab")), held, ...BAR.slice(2).map(button),
      ...CONTROLS.map((letter) => el("button", { type: "button", cls: letter === "c" ? "refuse" : "", on: { click: () => press(letter, { ctrl: true }) } }, `Ctrl-${letter.toUpperCase()}`))),
    el("small", {}, t("Or click the screen and type. All keys go to the program; only Tab leaves the screen (Ctrl-I is Tab there).")), sent);

  function off() {
    keys?.stop();
    keys = null;
    typing.checked = false;
    line.hidden = true;
    screen.node.classList.remove("keys");
  }

  typing.addEventListener("change", async () => {
    const on = typing.checked;
    try {
      await post(`/sessions/${id}/typing`, { on });
      off();
      if (!on) return;
      typing.checked = true;
      line.hidden = false;
      screen.node.classList.add("keys");
      speak(t("Typing is on. Tab leaves the screen."));
      keys = new KeyStream(id, (waiting, trouble) => {
        sent.textContent = waiting ? [t("1 key on the way|{count} keys on the way", { count: waiting }), trouble].filter(Boolean).join(": ") : "";
        if (!waiting && trouble) { toast(trouble); off(); }
      });
    } catch (error) { typing.checked = !on; toast(error.message); }
  });
  screen.node.addEventListener("keydown", (event) => {
    if (!keys || event.metaKey || event.isComposing || event.key === "Tab") return;
    if (event.ctrlKey && event.shiftKey && /^[cv]$/i.test(event.key)) return; // copy and paste
    const data = encode(event.key, { ctrl: event.ctrlKey, alt: event.altKey, shift: event.shiftKey }, screen.modes);
    if (data) { event.preventDefault(); send(data); screen.bottom(); }
  });
  screen.node.addEventListener("paste", (event) => {
    if (!keys) return;
    event.preventDefault();
    const text = event.clipboardData.getData("text").replace(/\r?\n/g, "\r").replaceAll("\x1b", "");
    send(screen.modes.includes(PASTE) ? `\x1b[200~${text}\x1b[201~` : text);
  });
  const node = el("div", { cls: "stack" }, el("div", { cls: "switch panel" }, el("label", { for: "typing" }, t("Type into this session"),
    el("small", {}, t("Your keys go straight to the program. Each use is written to the audit log."))), typing), line);
  return { node, off };
}
