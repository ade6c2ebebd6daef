// A person's keys as a terminal sends them, and the one ordered stream by which they reach the session.

import { newKey, post } from "/api.js";
import { t } from "/language.js";

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
export class KeyStream {
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
        if (error.status !== 0 && error.status !== 503 && error.error !== "rate_limited") return error.message;
        this.onChange(this.pending, t("waiting for the hub"));
        await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
      }
    }
    return t("Typing was switched off.");
  }

  stop() { this.stopped = true; }
}
