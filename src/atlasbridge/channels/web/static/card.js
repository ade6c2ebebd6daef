// One prompt as a card: our header, the tool's question as a quotation, and the ways to answer it.

import { Refused, get, post } from "/api.js";
import { el, speak, svg, toast } from "/dom.js";
import { receipt } from "/model.js";
import { Screen } from "/screen.js";
import { CONFIDENCE, by, clock, folder, left, short } from "/words.js";

const QUESTION_LINES = 3;
const ROUND = 2 * Math.PI * 21;

function ring(prompt) {
  const total = Math.max(1, (Date.parse(prompt.expires_at) - Date.parse(prompt.created_at)) / 1000);
  const line = svg("circle", { cls: "left", cx: 24, cy: 24, r: 21, "stroke-dasharray": ROUND });
  const words = el("span");
  const node = el("div", { cls: "ring", role: "timer" },
    svg("svg", { viewBox: "0 0 48 48", "aria-hidden": "true" }, svg("circle", { cx: 24, cy: 24, r: 21 }), line), words);
  const tick = () => {
    const rest = left(prompt.expires_at);
    line.setAttribute("stroke-dashoffset", (ROUND * (1 - Math.min(1, rest / total))).toFixed(1));
    words.textContent = clock(rest);
    node.setAttribute("aria-label", `${clock(rest)} left`);
    node.classList.toggle("short", rest < 60);
  };
  tick();
  return { node, tick };
}

function heading(prompt, host) {
  const session = prompt.session || {};
  const [sure, tone] = CONFIDENCE[prompt.confidence] || CONFIDENCE.low;
  const title = prompt.constraints.idle ? "is finished and waits for you" : "is asking";
  return el("div", { cls: "who-asks" },
    el("h2", { id: `h-${prompt.prompt_id}` }, `${session.tool || "A program"} ${title}`,
      session.label ? el("span", { cls: "tag" }, session.label) : null),
    el("small", { cls: "meta" }, `${folder(session.cwd)} · `, el("a", { href: `#session/${prompt.session_id}` }, `session ${short(prompt.session_id)}`), ` · ${host} `,
      el("span", { cls: `tag ${tone}`, title: "how sure we are that this is a prompt" }, sure)));
}

// What the tool says.  Its last lines are the question; what stands above them is smaller, and still there.
function quotation(prompt) {
  const lines = (prompt.constraints.idle ? prompt.excerpt : prompt.asked).split("\n");
  const [above, asked] = [lines.slice(0, -QUESTION_LINES).join("\n"), lines.slice(-QUESTION_LINES).join("\n")];
  return el("blockquote", { cls: prompt.constraints.idle ? "ask idle" : "ask" }, above ? el("small", {}, `${above}\n`) : null, asked,
    prompt.warning ? el("small", { cls: "tag warn" }, prompt.warning) : null);
}

export function ways(prompt) {
  if (prompt.constraints.secret) return [];
  if (prompt.choices.length) return prompt.choices;
  if (prompt.type === "yes_no") return [{ value: "y", label: "Yes" }, { value: "n", label: "No", refuses: true }];
  if (prompt.type === "confirm_enter") return [{ value: "enter", label: "Continue (Enter)" }];
  return [];
}

export class Card {
  constructor(prompt, host) {
    this.prompt = prompt;
    this.busy = false;
    this.ring = ring(prompt);
    this.word = el("div", { cls: "word", role: "status", hidden: true });
    this.stages = el("ol", { cls: "stages", hidden: true, "aria-label": "What became of your answer" });
    this.answers = el("div", { cls: "stack" }, this.choices(), this.textField());
    this.node = el("article", { cls: "card", tabindex: "-1", "aria-labelledby": `h-${prompt.prompt_id}`, "data-prompt": prompt.prompt_id },
      el("div", { cls: "card-top" }, heading(prompt, host), this.ring.node),
      quotation(prompt), this.picture(), this.answers, this.stages, this.word, this.foot());
  }

  tick() { this.ring.tick(); }

  choices() {
    const offered = ways(this.prompt);
    if (!offered.length) return null;
    if (this.prompt.constraints.multi_select) return this.several(offered);
    const first = offered.find((choice) => !choice.refuses && !choice.always);
    const button = (choice, at) => el("button", {
      type: "button", "data-value": choice.value,
      cls: `choice ${choice.refuses ? "refuse" : choice.always ? "always" : choice === first ? "first" : ""}`,
      on: { click: () => (choice.words ? this.field.focus() : this.answer(choice.value)) },
    }, el("kbd", { "aria-hidden": "true" }, /^[yn1-9]$/.test(choice.value) ? choice.value : at < 9 ? String(at + 1) : " "), el("span", { cls: "label" }, choice.label),
      choice.always ? el("span", { cls: "tag warn" }, "always") : null,
      choice.refuses ? el("span", { cls: "tag bad" }, "refuses") : null);
    const rank = (choice) => (choice.refuses ? 1 : 0);
    const buttons = offered.map((choice, at) => ({ choice, node: button(choice, at) }));
    buttons.sort((a, b) => rank(a.choice) - rank(b.choice));
    return el("div", { cls: "choices", role: "group", "aria-label": "Answers" }, ...buttons.map((item) => item.node));
  }

  several(offered) {
    const marks = offered.filter((choice) => !choice.refuses);
    const boxes = marks.map((choice) => el("input", { type: "checkbox", value: choice.value }));
    boxes.forEach((box, at) => { box.checked = Boolean(marks[at].default); });
    const send = () => this.answer(boxes.filter((box) => box.checked).map((box) => box.value).join(",") || "none");
    return el("div", { cls: "choices" },
      ...marks.map((choice, at) => el("label", { cls: "choice button" }, boxes[at], el("span", { cls: "label" }, choice.label))),
      el("button", { type: "button", cls: "main", on: { click: send } }, "Send the marked ones"),
      ...offered.filter((choice) => choice.refuses).map((choice) => el("button", {
        type: "button", cls: "choice refuse", "data-value": choice.value, on: { click: () => this.answer(choice.value) },
      }, el("span", { cls: "label" }, choice.label), el("span", { cls: "tag bad" }, "refuses"))));
  }

  textField() {
    const secret = Boolean(this.prompt.constraints.secret);
    if (!secret && !this.prompt.free_text) return null;
    const id = `t-${this.prompt.prompt_id}`;
    const field = secret ? el("input", { type: "password", id, autocomplete: "off" })
      : el(this.prompt.multiline ? "textarea" : "input", { id, type: "text", autocomplete: "off", rows: 3, maxlength: this.prompt.constraints.max_length || 1000 });
    this.field = field;
    const send = () => { const value = field.value; if (secret) field.value = ""; this.answer(value, true); };
    const label = secret ? "Secret (typed once, never stored)" : this.prompt.constraints.idle ? "Your next instruction"
      : this.prompt.choices.length ? "Or in your own words" : "Your answer";
    return el("div", { cls: "say" }, el("label", { for: id }, label),
      el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
        el("button", { type: "button", cls: "main send", on: { click: send } }, "Send"),
        this.prompt.type === "unknown" ? el("button", { type: "button", on: { click: () => this.answer("enter") } }, "Enter") : null),
      this.prompt.type === "unknown" ? el("small", {}, "We could not tell what is asked. Look at the screen first; a full-screen program takes keys in its session.") : null);
  }

  picture() {
    if (!this.prompt.screen) return null;
    const screen = new Screen("The screen around the question");
    screen.text(this.prompt.screen);
    const more = el("button", { type: "button", cls: "quiet more", "aria-expanded": "false", on: { click: () => {
      const on = screen.node.classList.toggle("whole");
      more.textContent = on ? "Show less" : "Show more";
      more.setAttribute("aria-expanded", String(on));
    } } }, "Show more");
    more.hidden = true;
    this.colour(screen, more);
    return el("div", { cls: "picture" }, screen.node, more);
  }

  async colour(screen, more) {
    try {
      if (!this.prompt.constraints.secret) screen.draw(await get(`/sessions/${this.prompt.session_id}/screen?styled=true`));
    } catch { /* the plain text stays */ }
    requestAnimationFrame(() => { more.hidden = !screen.frame(); });
  }

  foot() {
    const why = el("details", {}, el("summary", {}, "Why was I asked?"), el("table", {}, el("tbody", {},
      ...this.prompt.evidence.map((item) => el("tr", {}, el("td", {}, item.signal), el("td", {}, String(item.score)), el("td", {}, item.detail))))));
    const choice = ways(this.prompt).find((item) => item.value === this.prompt.safe_default);
    const late = this.prompt.safe_default ? `If nobody answers: ${choice ? choice.label : this.prompt.safe_default}` : "If nobody answers, nothing is typed.";
    const report = el("button", { type: "button", cls: "quiet report", on: { click: () => this.report(report) } }, "Not a prompt");
    return el("div", { cls: "card-foot" }, el("small", { cls: "late" }, late), report, this.prompt.evidence.length ? why : null);
  }

  async report(button) {
    button.disabled = true;
    try {
      await post(`/prompts/${this.prompt.prompt_id}/report`);
      button.textContent = "Reported, thank you";
    } catch (error) {
      button.disabled = false;
      toast(error.message);
    }
  }

  async answer(value, asText = false) {
    if (this.busy) return;
    this.lock(true);
    this.say("Sending…");
    try {
      const answer = await post(`/prompts/${this.prompt.prompt_id}/reply`, { value, as_text: asText, session_id: this.prompt.session_id });
      this.say(answer.message, "good");
    } catch (error) {
      this.lock(false);
      this.say(error instanceof Refused ? error.message : String(error), "bad");
      speak(`Refused: ${error.message}`);
    }
  }

  lock(on) {
    this.busy = on;
    for (const control of this.answers.querySelectorAll("button, input")) control.disabled = on;
  }

  say(sentence, tone = "") {
    this.word.hidden = !sentence;
    this.word.className = `word ${tone}`;
    this.word.textContent = sentence;
  }

  progress() {
    const last = receipt(this.prompt.prompt_id)?.stage;
    const reached = ["received", "typed", "taken"].indexOf(last);
    if (reached < 0) return;
    this.stages.hidden = false;
    this.stages.replaceChildren(...["received", "typed", "taken"].map((name, at) =>
      el("li", { cls: at <= reached ? "done" : "" }, name)));
  }
}

export function overCard({ prompt, sentence, stage }) {
  const session = prompt.session || {};
  const who = by(prompt.decided_by);
  const bad = ["still_there", "failed", "expired"].includes(stage);
  const reached = ["received", "typed", "taken"].indexOf(stage);
  const words = sentence || (who ? `Answered by ${who}.` : "No longer asked.");
  return el("article", { cls: "card over", "data-settled": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, session.tool || "A program"), el("small", {}, folder(session.cwd)),
      who ? el("small", { cls: "who" }, `by ${who}`) : null),
    quotation(prompt),
    reached >= 0 ? el("ol", { cls: "stages", "aria-label": "What became of the answer" },
      ...["received", "typed", "taken"].map((name, at) => el("li", { cls: at <= reached ? "done" : "" }, name))) : null,
    el("div", { cls: `word ${bad ? "bad" : reached >= 0 ? "good" : ""}`, role: "status" }, words));
}
