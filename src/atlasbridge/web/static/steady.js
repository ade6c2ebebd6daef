// Nothing moves under a finger.  While one is down nothing is redrawn, and only a press that went down and up on the same
// control, at the same place, after that place had rested for a moment, counts.  Keys and assistive tools press without one.

const STEADY_MS = 350; // a tap this soon after something moved was meant for what stood there before
const AFTER_ANSWER_MS = 650; // the next card comes where the last one was: an impatient second tap is not for it

export class Steady {
  // `area`: in which presses are watched; `redraw`: what was put off while a finger was down.
  constructor(area, redraw) {
    this.area = area;
    this.redraw = redraw;
    this.held = false;
    this.late = false;
    this.pressed = null;
    this.quietUntil = -Infinity;
    this.down = (event) => {
      this.held = true;
      const control = this.control(event);
      this.pressed = control && { control, at: place(control), early: !this.rested() };
    };
    this.up = () => { this.held = false; setTimeout(() => { if (this.late && !this.held) { this.late = false; this.redraw(); } }, 0); };
    this.cancel = () => { this.pressed = null; this.up(); };
    this.click = (event) => {
      const control = this.control(event);
      if (!control || event.detail === 0) return;
      const meant = this.pressed && this.pressed.control === control && !this.pressed.early && this.pressed.at === place(control);
      this.pressed = null;
      if (!meant) { event.preventDefault(); event.stopImmediatePropagation(); }
    };
    window.addEventListener("pointerdown", this.down, true);
    window.addEventListener("pointerup", this.up, true);
    window.addEventListener("pointercancel", this.cancel, true);
    window.addEventListener("click", this.click, true);
  }

  control(event) {
    const found = event.target.closest?.("button, a, label.choice");
    return found && this.area.contains(found) ? found : null;
  }

  moved(answered = false) { this.quietUntil = Math.max(this.quietUntil, performance.now() + (answered ? AFTER_ANSWER_MS : STEADY_MS)); }

  rested() { return performance.now() >= this.quietUntil; }

  // Whether to draw now; otherwise it is done when the finger is up.
  mayDraw() {
    this.late ||= this.held;
    return !this.held;
  }

  stop() {
    for (const [name, handler] of /** @type {[string, (event: any) => void][]} */ ([["pointerdown", this.down], ["pointerup", this.up], ["pointercancel", this.cancel], ["click", this.click]])) window.removeEventListener(name, handler, true);
  }
}

function place(control) {
  const { left, top } = control.getBoundingClientRect();
  return `${Math.round(left)},${Math.round(top)}`;
}
