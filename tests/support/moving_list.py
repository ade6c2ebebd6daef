"""A thousand taps on a page whose prompts come and go under the finger, for the page of a hub and of a fleet server."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.support.waiting import wait_for

MOST_S = 240.0

# A person aims at a button; the finger comes down up to 300 ms later and up a moment after, and what is open changes at
# any moment of it.  The page's own modules are driven; only the way to the hub is cut.
_TAPS = """
const count = arguments[0];
const done = (found) => { window.tapped = found; };
window.tapped = null;
let now = 10000;
performance.now = () => now;
window.fetch = () => new Promise(() => {});
window.EventSource = class {};
let seed = 7;
const chance = (most) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % most; };
const frame = () => new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0)));
Promise.all([import("/model.js")]).then(async ([model]) => {
  let number = 0;
  const prompt = () => ({
    prompt_id: `p${number += 1}`, session_id: `s${number}`, type: "multiple_choice", state: "awaiting_reply",
    confidence: "high", excerpt: "Go?", question: "Go?\\n".repeat(1 + chance(4)), screen: "", evidence: [], whole: true,
    constraints: {}, safe_default: "", subject: null, agreed: [], names: {}, later: [], answer: null, may_answer: true,
    choices: [{ value: "1", label: "Yes" }, { value: "2", label: "Always", always: true },
      { value: "3", label: "No", refuses: true }],
    session: { session_id: `s${number}`, label: `task ${number}`, tool: "sh", cwd: "/", state: "active", command: [] },
    created_at: new Date().toISOString(), expires_at: new Date(Date.now() + 60000 + chance(600000)).toISOString() });
  const open = () => [...model.prompts.values()];
  const raise_ = () => model.take({ event: "prompt.raised", prompt: prompt() });
  const close = (one) => model.take({ event: "prompt.closed", prompt: { ...one, state: "withdrawn" } });
  const change = () => {
    const shown = document.querySelector("[data-prompt]")?.dataset.prompt;
    if (open().length < 3 || chance(3) === 0) raise_();
    else close(chance(2) && model.prompts.has(shown) ? model.prompts.get(shown) : open()[chance(open().length)]);
  };
  for (let made = 0; made < 4; made += 1) raise_();
  await frame();
  const send = (kind, x, y, more) => document.elementFromPoint(x, y)?.dispatchEvent(
    new PointerEvent(kind, { bubbles: true, cancelable: true, ...more }));
  const inSight = (one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return bottom < innerHeight && top > 0 && !one.disabled;
  };
  let [wrong, right, moved] = [0, 0, 0];
  for (let turn = 0; turn < count; turn += 1) {
    now += 1000;
    const buttons = [...document.querySelectorAll("[data-prompt] .decide button")].filter(inSight);
    if (!buttons.length) { raise_(); await frame(); continue; }
    const aim = buttons[chance(buttons.length)];
    const box = aim.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const meant = aim.closest("[data-prompt]").dataset.prompt;
    const moment = chance(5);
    const disturb = async () => { change(); moved += 1; if (chance(2)) await frame(); };
    if (moment === 0) await disturb();
    now += chance(300);
    send("pointerdown", x, y);
    if (moment === 1) await disturb();
    now += chance(200);
    if (moment === 2) await disturb();
    send("pointerup", x, y);
    if (moment === 3) await disturb();
    send("click", x, y, { detail: 1 });
    for (const one of [...open(), ...model.settled.map((item) => item.prompt)]) {
      if (model.myAnswer(one.prompt_id)?.state !== "sending") continue;
      if (one.prompt_id === meant) right += 1; else wrong += 1;
      model.setMine(one.prompt_id, null);
      close(one);
    }
    if (model.prompts.size > 6) close(open()[0]);
    if (model.prompts.size < 2) raise_();
    await frame();
  }
  done([wrong, right, moved]);
}, (error) => done([String(error), 0, 0]));
"""


def tap_a_moving_list(browser: Any, count: int = 1000) -> tuple[int, int, int]:
    """How many taps hit another prompt than the one aimed at, how many hit it, and how often something moved."""
    browser.execute_script(_TAPS, count)  # it returns at once: the driver waits two minutes for an answer, no longer
    tapped = partial(browser.execute_script, "return window.tapped")
    wrong, right, moved = wait_for(tapped, "the last tap", MOST_S)
    assert isinstance(wrong, int), wrong
    return wrong, right, moved
