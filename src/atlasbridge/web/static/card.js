// One prompt as a card: our header, the tool's question as a quotation, and the ways to answer it.

import { give } from "/answering.js";
import { get, may, post } from "/api.js";
import { PLAIN, el, svg, toast } from "/dom.js";
import { grantPanel, votes } from "/grants.js";
import { laterBox } from "/later.js";
import { myAnswer, receipt } from "/model.js";
import { proofNote } from "/passkey.js";
import { Screen } from "/screen.js";
import { asked } from "/subject.js";
import { ways } from "/ways.js";
import { CONFIDENCE, by, clock, folder, left, moment, short } from "/words.js";

const ROUND = 2 * Math.PI * 21;
const STAGES = ["received", "typed", "taken"];
const keep = (() => { try { return window.sessionStorage; } catch { return null; } })();

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

const DOORS = { ask: "a command", mcp: "an MCP client", acp: "an editor's agent" };  // what asks without a terminal

function heading(prompt, host) {
  const session = prompt.session || {};
  const [sure, tone] = CONFIDENCE[prompt.confidence] || CONFIDENCE.low;
  const title = prompt.constraints.idle ? "is finished and waits for you" : "is asking";
  return el("div", { cls: "who-asks" },
    el("h2", { id: `h-${prompt.prompt_id}` }, `${session.label || session.tool || "A program"} ${title}`),
    el("small", { cls: "meta" }, session.label ? `${DOORS[session.tool] || session.tool} · ` : "", `${folder(session.cwd)} · `,
      el("a", { href: `#session/${prompt.session_id}`, title: host ? `the session on ${host}` : "the session" }, short(prompt.session_id)), " ",
      prompt.confidence === "high" ? null : el("span", { cls: `tag ${tone}`, title: "how sure we are that this is a prompt" }, sure)));
}

const words = (choice) => el("span", { cls: "label" }, choice.label, choice.detail ? el("small", { cls: "detail" }, choice.detail) : null);

export class Card {
  constructor(prompt, host) {
    this.prompt = prompt;
    this.busy = false;
    this.ring = ring(prompt);
    const safe = ways(prompt).find((item) => item.value === prompt.safe_default);
    this.timerLabel = safe ? safe.label : prompt.safe_default;
    this.late = el("small", { cls: "late" });
    this.soon = el("p", { cls: "word warn soon", role: "timer", hidden: true });
    this.word = el("div", { cls: "word", role: "status", hidden: true });
    this.stages = el("ol", { cls: "stages", hidden: true, "aria-label": "What became of your answer" });
    this.answers = el("div", { cls: "stack" }, votes(prompt), proofNote(prompt), this.choices(), this.textField(), grantPanel(prompt));
    if (!may("answer")) this.answers = el("p", { cls: "word" }, "This browser may only look. A link that may answer is made with: atlasbridge web");
    this.node = el("article", { cls: "card", tabindex: "-1", "aria-labelledby": `h-${prompt.prompt_id}`, "data-prompt": prompt.prompt_id },
      el("div", { cls: "card-top" }, heading(prompt, host), this.ring.node), this.soon,
      ...asked(prompt), ...(prompt.type === "unknown" ? [this.picture(), this.answers, this.stages, this.word] : [this.answers, this.stages, this.word, this.picture()]), this.foot());
    this.sayTimer();
    this.progress();
  }

  tick() {
    this.ring.tick();
    this.sayTimer();
  }

  // What happens when nobody answers.  In its last minute it stands above the answers, where nobody overlooks it.
  sayTimer() {
    const label = this.timerLabel;
    const rest = left(this.prompt.expires_at);
    const soon = Boolean(label) && rest < 60;
    this.late.textContent = !label ? "If nobody answers, nothing is typed." : `If nobody answers, a timer answers “${label}” in ${clock(rest)}.`;
    this.late.hidden = soon;
    this.soon.hidden = !soon;
    if (soon) this.soon.textContent = rest > 0 ? `In ${clock(rest)} a timer answers “${label}”, unless somebody answers first.` : `A timer answers “${label}” now, unless the terminal is in use.`;
  }

  choices() {
    const offered = ways(this.prompt);
    if (!offered.length) return null;
    if (this.prompt.constraints.multi_select) return this.several(offered);
    const first = offered.find((choice) => !choice.refuses && !choice.always);
    const button = (choice, at) => el("button", {
      type: "button", "data-value": choice.value,
      cls: `choice ${choice.refuses ? "refuse" : choice.always ? "always" : choice === first ? "first" : ""}`,
      on: { click: () => (choice.words ? this.field.focus() : this.answer(choice.value, false, choice.label)) },
    }, el("kbd", { "aria-hidden": "true" }, /^[yn1-9]$/.test(choice.value) ? choice.value : at < 9 ? String(at + 1) : " "), words(choice),
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
    const send = () => {
      const chosen = boxes.map((box, at) => [box.checked, marks[at]]).filter(([on]) => on).map(([, choice]) => choice);
      this.answer(chosen.map((choice) => choice.value).join(",") || "none", false, chosen.map((choice) => choice.label).join(", ") || "none of them");
    };
    return el("div", { cls: "choices" },
      ...marks.map((choice, at) => el("label", { cls: "choice button" }, boxes[at], words(choice))),
      el("button", { type: "button", cls: "main", on: { click: send } }, "Send the marked ones"),
      ...offered.filter((choice) => choice.refuses).map((choice) => el("button", {
        type: "button", cls: "choice refuse", "data-value": choice.value, on: { click: () => this.answer(choice.value, false, choice.label) },
      }, words(choice), el("span", { cls: "tag bad" }, "refuses"))));
  }

  textField() {
    const secret = Boolean(this.prompt.constraints.secret);
    if (!secret && !this.prompt.free_text) return null;
    const id = `t-${this.prompt.prompt_id}`;
    const field = secret ? el("input", { type: "password", id, autocomplete: "off" })
      : el(this.prompt.multiline ? "textarea" : "input", { id, type: "text", rows: 3, maxlength: this.prompt.constraints.max_length || 1000, ...PLAIN });
    this.field = field;
    if (!secret) {
      field.value = keep?.getItem(`draft-${this.prompt.prompt_id}`) || "";
      field.addEventListener("input", () => keep?.setItem(`draft-${this.prompt.prompt_id}`, field.value));
    }
    const send = () => { const value = field.value; if (secret) field.value = ""; this.answer(value, true, secret ? "a secret" : value); };
    const label = secret ? "Secret (typed once, never stored)" : this.prompt.constraints.idle ? `Your next ${this.prompt.constraints.commands ? "command" : "instruction"}`
      : this.prompt.constraints.fields?.length && this.prompt.type === "free_text" ? `Its fields, as in: ${this.prompt.constraints.fields.map((name) => `${name}: …`).join("; ")}`
      : this.prompt.choices.length ? "Or in your own words" : "Your answer";
    return el("div", { cls: "say" }, el("label", { for: id }, label),
      el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
        el("button", { type: "button", cls: "main send", on: { click: send } }, "Send"),
        this.prompt.type === "unknown" ? el("button", { type: "button", on: { click: () => this.answer("enter", false, "Enter") } }, "Enter") : null),
      this.prompt.type === "unknown" ? el("small", {}, this.prompt.constraints.idle ? "It rests and takes keys, in its session; nothing is asked." : "We could not tell what is asked. Look at the screen first; a full-screen program takes keys in its session.") : null);
  }

  // The screen adds nothing where the question and its subject are whole; there it waits behind a button.
  picture() {
    if (!this.prompt.screen) return null;
    const whole = this.prompt.type !== "unknown" && (this.prompt.constraints.idle || this.prompt.whole || this.prompt.subject?.complete);
    const screen = new Screen("The screen around the question", "group");
    const more = el("button", { type: "button", cls: "quiet more", "aria-expanded": "false" }, "Show more");
    const draw = () => {
      screen.text(this.prompt.screen);
      this.colour(screen, more);
    };
    more.addEventListener("click", () => {
      const on = screen.node.classList.toggle("whole");
      more.textContent = on ? "Show less" : "Show more";
      more.setAttribute("aria-expanded", String(on));
    });
    more.hidden = true;
    const box = el("div", { cls: "picture" }, screen.node, more);
    if (!whole) { draw(); return box; }
    const details = el("details", {}, el("summary", {}, "The screen"), box);
    details.addEventListener("toggle", () => { if (details.open && !screen.rows.children.length) draw(); });
    return details;
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
    const report = el("button", { type: "button", cls: "quiet report", on: { click: () => this.report(report) } }, "Not a prompt");
    return el("div", { cls: "card-foot" }, this.late, may("answer") ? report : null, this.prompt.evidence.length ? why : null, laterBox(this.prompt, ways(this.prompt)));
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

  async answer(value, asText = false, label = value) {
    if (this.busy || !may("answer")) return;
    this.lock(true);
    if (await give(this.prompt, { value, asText, label }, (sentence, tone) => this.say(sentence, tone))) keep?.removeItem(`draft-${this.prompt.prompt_id}`);
    else this.lock(false);
  }

  lock(on) {
    this.busy = on;
    for (const control of this.answers.querySelectorAll("button, input, textarea")) control.disabled = on;
  }

  say(sentence, tone = "") {
    this.word.hidden = !sentence;
    this.word.className = `word ${tone}`;
    this.word.textContent = sentence;
  }

  progress() {
    const reached = STAGES.indexOf(receipt(this.prompt.prompt_id)?.stage);
    if (reached < 0) return;
    this.stages.hidden = false;
    this.stages.replaceChildren(...STAGES.map((name, at) => el("li", { cls: at <= reached ? "done" : "" }, name)));
  }
}

// Which answer, by whom, when; and to whom this browser's own answer lost.
export function verdict(prompt) {
  const answer = prompt.answer;
  if (!answer) return null;
  return el("p", { cls: "verdict" }, "Answer: ", el("strong", {}, `“${answer.label}”`), el("span", { cls: "who" }, ` by ${by(answer.by)}`),
    el("time", { datetime: answer.at, title: moment(answer.at) }, ` at ${new Date(answer.at).toLocaleTimeString()}`));
}

function mineLost(prompt) {
  const own = myAnswer(prompt.prompt_id);
  if (!own || own.state === "used") return null;
  if (own.state === "sending" || own.state === "unknown") return el("div", { cls: "word warn", role: "status" }, `It is not known yet whether your “${own.label}” was used.`);
  const winner = prompt.answer ? ` ${by(prompt.answer.by)} answered “${prompt.answer.label}” first.` : ` ${own.sentence || "It came too late."}`;
  return el("div", { cls: "word bad", role: "status" }, `Your answer “${own.label}” was not used.${winner}`);
}

// Whoever keeps the log's head can tell later that the log was not written anew.
const anchor = (head) => head ? el("small", { cls: "anchor", title: "The audit log when this was settled: entries and hash" }, `audit ${head}`) : null;

export function overCard({ prompt, sentence, stage, head }) {
  const session = prompt.session || {};
  const who = by(prompt.decided_by);
  const bad = ["still_there", "failed", "expired"].includes(stage);
  const reached = STAGES.indexOf(stage);
  const words = reached >= 0 && prompt.answer ? "" : sentence || (who ? `Answered by ${who}.` : "No longer asked.");
  return el("article", { cls: "card over", "data-settled": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, session.label || session.tool || "A program"), el("small", {}, folder(session.cwd)),
      who && !prompt.answer ? el("small", { cls: "who" }, `by ${who}`) : null),
    el("div", { cls: "about" }, ...asked(prompt)), verdict(prompt), mineLost(prompt),
    reached >= 0 ? el("ol", { cls: "stages", "aria-label": "What became of the answer" },
      ...STAGES.map((name, at) => el("li", { cls: at <= reached ? "done" : "" }, name))) : null,
    words ? el("div", { cls: `word ${bad ? "bad" : ""}`, role: "status" }, words) : null, anchor(head));
}

// Its time is over, nothing was typed, and it still stands on the screen.
export function lateCard(prompt) {
  const session = prompt.session || {};
  const again = el("button", { type: "button", cls: "main", on: { click: async () => {
    again.disabled = true;
    try { await post(`/prompts/${prompt.prompt_id}/again`); } catch (error) { again.disabled = false; toast(error.message); }
  } } }, "Ask again");
  return el("article", { cls: "card late", "data-late": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, session.label || session.tool || "A program"), el("small", {}, folder(session.cwd)), el("span", { cls: "tag warn" }, "still waiting")),
    el("div", { cls: "about" }, ...asked(prompt)), el("div", { cls: "word warn" }, "Nobody answered in time and nothing was typed. It still stands on the screen."),
    el("div", { cls: "row" }, may("answer") ? again : null, el("a", { href: `#session/${prompt.session_id}` }, "Look at its screen")));
}
