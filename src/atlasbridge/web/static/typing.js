// Typing into a session: the switch, the field and the keys for phones, and the real keyboard on the screen itself.

import { may, newKey, offers, post } from "/api.js";
import { el, PLAIN, speak, toast } from "/dom.js";
import { t } from "/words.js";

const BAR = [["Escape", "Esc"], ["Tab", "Tab"], ["ArrowUp", "↑"], ["ArrowDown", "↓"], ["ArrowLeft", "←"], ["ArrowRight", "→"],
  ["Enter", "Enter"], ["Backspace", "⌫"], ["Home", "Home"], ["End", "End"], ["PageUp", "PgUp"], ["PageDown", "PgDn"], ["Delete", "Del"]];
const CONTROLS = ["c", "d", "z", "l", "r"];
const PASTE = 2004; // the program wants pasted text marked as such

export function typingBar(id, screen) {
  if (!offers("typing")) return { node: null, off: () => {} };
  if (!may("admin")) return { node: el("small", {}, t("This browser cannot type into sessions. For a link that can, run: atlasbridge web --scope admin")), off: () => {} };
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
      screen.node.scrollIntoView({ block: "end" }); // above the bar with the keys
      speak(t("Typing is on. Tab leaves the screen."));
      keys = new KeyStream(id, (waiting, trouble) => {
        sent.textContent = waiting ? [t("Sending 1 key|Sending {count} keys", { count: waiting }), trouble].filter(Boolean).join(": ") : "";
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
    el("small", {}, t("Your keys go straight to the program. The audit log records each use."))), typing), line);
  return { node, off };
}

// A person's keys as a terminal sends them, and the one ordered stream by which they reach the session.

const CURSOR = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const NUMBERED = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const LETTERED = { F1: "P", F2: "Q", F3: "R", F4: "S" };
const SIMPLE = { Enter: "\r", Escape: "\x1b", Tab: "\t", Backspace: "\x7f" };
const RETRY_MS = 700;

// What a key with these modifiers is to a program; "" where it is nothing.
export function encode(key, { ctrl = false, alt = false, shift = false } = {}, modes = []) {
  const mods = 1 + (shift ? 1 : 0) + (alt ? 2 : 0) + (ctrl ? 4 : 0);
  if (CURSOR[key]) return mods > 1 ? `\x1b[1;${mods}${CURSOR[key]}` : `\x1b${modes.includes(1) ? "O" : "["}${CURSOR[key]}`;
  if (NUMBERED[key]) return `\x1b[${NUMBERED[key]}${mods > 1 ? `;${mods}` : ""}~`;
  if (LETTERED[key]) return mods > 1 ? `\x1b[1;${mods}${LETTERED[key]}` : `\x1bO${LETTERED[key]}`;
  if (key === "Tab" && shift) return "\x1b[Z";
  const plain = SIMPLE[key] || ([...key].length === 1 ? (ctrl ? control(key) : key) : "");
  return plain && alt ? `\x1b${plain}` : plain;
}

function control(key) {
  if (key === " " || key === "@") return "\0";
  if (key === "?") return "\x7f";
  const code = key.toUpperCase().charCodeAt(0);
  return code >= 64 && code <= 95 ? String.fromCharCode(code - 64) : "";
}

// Pieces leave one after the other, each with its number; a piece whose fate is unknown is sent again with the same number,
// and the hub types it once.  Keys that come meanwhile wait and leave together.
class KeyStream {
  constructor(sessionId, onChange) {
    this.path = `/sessions/${sessionId}/keys`;
    this.onChange = onChange; // (waiting, trouble)
    this.stream = newKey();
    this.number = 0;
    this.waiting = "";
    this.flying = "";
    this.stopped = false;
  }

  get pending() { return this.flying.length + this.waiting.length; }

  type(data) {
    this.waiting += data;
    this.onChange(this.pending, "");
    if (!this.flying) this.run();
  }

  async run() {
    while (this.waiting && !this.stopped) {
      this.flying = [...this.waiting].slice(0, 1000).join("");
      this.waiting = this.waiting.slice(this.flying.length);
      const trouble = await this.deliver();
      if (trouble) {
        const lost = this.pending;
        this.flying = this.waiting = "";
        this.onChange(0, `${trouble} ${t("1 key was not typed.|{count} keys were not typed.", { count: lost })}`);
        return;
      }
      this.flying = "";
      this.number += 1;
      this.onChange(this.pending, "");
    }
  }

  // "" when it was typed, else why it was not.
  async deliver() {
    while (!this.stopped) {
      try {
        await post(this.path, { data: this.flying, stream: this.stream, number: this.number });
        return "";
      } catch (error) {
        if (error.status !== 0 && error.error !== "rate_limited") return error.message;
        this.onChange(this.pending, t("waiting for the hub"));
        await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
      }
    }
    return t("Typing was turned off.");
  }

  stop() { this.stopped = true; }
}
