// One prompt as a card: what it wants to do, where, and the ways to answer it.  No and Yes stand in a bar that never leaves
// the screen.

import { give } from "/answering.js";
import { get, may, offers, post } from "/api.js";
import { PLAIN, el, svg, toast, unbroken } from "/dom.js";
import { grantPanel, votes } from "/grants.js";
import { t } from "/language.js";
import { laterBox } from "/later.js";
import { myAnswer, receipt } from "/model.js";
import { proofNote } from "/passkey.js";
import { Screen } from "/screen.js";
import { asked, effectsOf, sentence as sentenceOf } from "/subject.js";
import { bar, disagrees, ways } from "/ways.js";
import { CONFIDENCE, by, clock, folder, left, moment, time } from "/words.js";

const ROUND = 2 * Math.PI * 21;
export const STAGES = ["received", "typed", "taken"];
export const stageName = (stage) => ({ received: t("sent"), typed: t("typed"), taken: t("taken") })[stage];
const SURE_MS = [400, 6000]; // a second tap sooner than this was one tap; later than that, it is a first one again
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
    node.setAttribute("aria-label", t("{time} left", { time: clock(rest) }));
    node.classList.toggle("short", rest < 60);
  };
  tick();
  return { node, tick };
}

const askers = () => ({ ask: t("a command"), mcp: t("an MCP client"), acp: t("an editor's agent") }); // what asks without a terminal
export const nameOf = (prompt) => prompt.session?.label || prompt.session?.tool || t("A program");

function heading(prompt, host) {
  const session = prompt.session || {};
  const [sure, tone] = CONFIDENCE()[prompt.confidence] || CONFIDENCE().low;
  const title = prompt.constraints.idle ? t("{name} is finished and waits for you", { name: nameOf(prompt) }) : t("{name} is asking", { name: nameOf(prompt) });
  const where = [prompt.machine, session.label ? askers()[session.tool] || session.tool : "", folder(session.cwd)].filter(Boolean).join(" · ");
  return el("div", { cls: "who-asks" },
    el("h2", { id: `h-${prompt.prompt_id}` }, title),
    el("small", { cls: "meta" }, el("a", { href: `#session/${prompt.session_id}`, title: host ? t("the session on {host}", { host }) : t("the session") }, where || t("the session")), " ",
      prompt.confidence === "high" ? null : el("span", { cls: `tag ${tone}`, title: t("how sure we are that this is a prompt") }, sure)));
}

const words = (choice) => el("span", { cls: "label" }, ...unbroken(choice.label), choice.detail ? el("small", { cls: "detail" }, choice.detail) : null);

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
    this.stages = el("ol", { cls: "stages", hidden: true, "aria-label": t("What became of your answer") });
    this.can = may("answer") && prompt.may_answer !== false;
    this.sure = { value: "", at: -Infinity };
    const field = this.can && !disagrees(prompt) ? this.textField() : null;
    const choices = this.can ? this.choices() : null;
    this.answers = el("div", { cls: "stack" }, votes(prompt), proofNote(prompt), choices, prompt.choices.length ? field : null, this.can && offers("grant") ? grantPanel(prompt) : null);
    this.bar = this.can ? this.decide(prompt.choices.length ? null : field) : el("p", { cls: "word" }, prompt.may_answer === false ? t("You can see this, but not answer it.") : t("This browser can only look. Make a link that can answer with: atlasbridge web"));
    const about = prompt.type === "unknown" ? [this.picture(), this.answers] : [this.answers, this.picture()];
    this.node = el("article", { cls: "card", tabindex: "-1", "aria-labelledby": `h-${prompt.prompt_id}`, "data-prompt": prompt.prompt_id },
      el("div", { cls: "card-body" }, el("div", { cls: "card-top" }, heading(prompt, host), this.ring.node), ...asked(prompt), ...about, this.foot()),
      el("div", { cls: "answer-bar" }, effectsOf(prompt), this.soon, this.stages, this.word, this.bar));
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
    this.late.textContent = !label ? t("If nobody answers, nothing is typed.") : t("If nobody answers, a timer answers “{label}” in {time}.", { label, time: clock(rest) });
    this.late.hidden = soon;
    this.soon.hidden = !soon;
    if (soon) this.soon.textContent = rest > 0 ? t("In {time} a timer answers “{label}”, unless somebody answers first.", { label, time: clock(rest) }) : t("A timer answers “{label}” now, unless the terminal is in use.", { label });
  }

  // What stands in the bar: No on the left, Yes on the right; a field where only words are an answer.
  decide(field) {
    const { no, yes } = bar(this.prompt);
    const several = this.prompt.constraints.multi_select && this.boxes ? el("button", { type: "button", cls: "main send-marked", on: { click: () => this.sendMarked() } }, t("Send the marked ones")) : null;
    const button = (choice, cls) => el("button", { type: "button", "data-value": choice.value, cls: `choice ${cls}`, on: { click: () => this.choose(choice) } }, words(choice));
    const buttons = [no ? button(no, "refuse") : null, several, yes ? button(yes, "first") : null].filter(Boolean);
    return el("div", { cls: "stack" }, field, buttons.length ? el("div", { cls: "row decide", role: "group", "aria-label": t("Decide") }, ...buttons) : null);
  }

  choices() {
    const { rest } = bar(this.prompt);
    if (this.prompt.constraints.multi_select) return this.several(rest);
    if (!rest.length) return null;
    const all = ways(this.prompt);
    const key = (choice) => { const at = all.indexOf(choice); return /^[yn1-9]$/.test(choice.value) ? choice.value : at < 9 ? String(at + 1) : " "; };
    const button = (choice) => el("button", {
      type: "button", "data-value": choice.value, cls: `choice ${choice.refuses ? "refuse" : choice.always ? "always" : ""}`, on: { click: () => this.choose(choice) },
    }, el("kbd", { "aria-hidden": "true" }, key(choice)), words(choice),
      choice.always ? el("span", { cls: "tag warn" }, t("always")) : null, choice.refuses ? el("span", { cls: "tag bad" }, t("refuses")) : null);
    return el("div", { cls: "choices", role: "group", "aria-label": t("More answers") }, ...rest.map(button));
  }

  // One choice, by a tap or a key.  What holds for ever needs a second one.
  choose(choice) {
    if (this.busy) return undefined;
    if (choice.words) return this.field?.focus();
    const now = performance.now();
    const again = this.sure.value === choice.value && now - this.sure.at > SURE_MS[0] && now - this.sure.at < SURE_MS[1];
    if (!choice.always || again) return this.answer(choice.value, false, choice.label);
    if (this.sure.value !== choice.value || now - this.sure.at >= SURE_MS[1]) this.sure = { value: choice.value, at: now };
    return this.say(t("This will not be asked again: “{label}”. Press it once more to confirm.", { label: choice.label }), "warn");
  }

  several(offered) {
    const marks = offered.filter((choice) => !choice.refuses);
    this.boxes = marks.map((choice) => { const box = el("input", { type: "checkbox", value: choice.value }); box.checked = Boolean(choice.default); return [box, choice]; });
    return el("div", { cls: "choices" }, ...this.boxes.map(([box, choice]) => el("label", { cls: "choice button" }, box, words(choice))));
  }

  sendMarked() {
    const chosen = this.boxes.filter(([box]) => box.checked).map(([, choice]) => choice);
    this.answer(chosen.map((choice) => choice.value).join(",") || "none", false, chosen.map((choice) => choice.label).join(", ") || t("none of them"));
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
    const send = () => { const value = field.value; if (secret) field.value = ""; this.answer(value, true, secret ? t("a secret") : value); };
    return el("div", { cls: "say" }, el("label", { for: id }, this.fieldLabel(secret)),
      el("div", { cls: "row" }, el("div", { cls: "grow" }, field),
        el("button", { type: "button", cls: "main send", on: { click: send } }, t("Send"))),
      this.keys(),
      this.prompt.type === "unknown" ? el("small", {}, this.prompt.constraints.idle ? t("It is at rest and takes keys in its session. It asks nothing.") : t("It is not clear what is asked. Look at the screen first. A full-screen program takes keys in its session.")) : null);
  }

  fieldLabel(secret) {
    const fields = this.prompt.constraints.fields;
    if (secret) return t("Secret (typed once, never stored)");
    if (this.prompt.constraints.idle) return this.prompt.constraints.commands ? t("Your next command") : t("Your next instruction");
    if (fields?.length && this.prompt.type === "free_text") return t("Its fields, as in: {example}", { example: fields.map((name) => `${name}: …`).join("; ") });
    return this.prompt.choices.length ? t("Or in your own words") : t("Your answer");
  }

  // Keys for a line that takes any text; where it is not known what is asked, the question can also be left as it is.
  keys() {
    if (this.prompt.constraints.secret || this.prompt.constraints.idle || this.prompt.choices.length || Object.hasOwn(askers(), this.prompt.session?.tool)) return null;
    const unknown = this.prompt.type === "unknown";
    const key = (value, label, shown) => el("button", { type: "button", "data-value": value, on: { click: () => this.answer(value, false, label) } }, shown);
    return el("div", { cls: "row keys", role: "group", "aria-label": t("Keys") },
      key("enter", t("Enter key"), unknown ? t("Send Enter") : "Enter"), key("esc", t("Esc key"), "Esc"), key("ctrl-c", t("Ctrl-C key"), "Ctrl-C"),
      unknown ? key("cancel", t("Leave it"), t("Leave it")) : null,
      unknown ? el("button", { type: "button", on: { click: () => this.node.querySelector(".picture")?.scrollIntoView({ block: "start" }) } }, t("Show output")) : null);
  }

  // The screen adds nothing where the question and its subject are whole; there it waits behind a button.
  picture() {
    if (!this.prompt.screen) return null;
    const whole = this.prompt.type !== "unknown" && (this.prompt.constraints.idle || this.prompt.whole || this.prompt.subject?.complete);
    const screen = new Screen(t("The screen around the question"), "group");
    const more = el("button", { type: "button", cls: "quiet more", "aria-expanded": "false" }, t("Show more"));
    const draw = () => {
      screen.text(this.prompt.screen);
      this.colour(screen, more);
    };
    more.addEventListener("click", () => {
      const on = screen.node.classList.toggle("whole");
      more.textContent = on ? t("Show less") : t("Show more");
      more.setAttribute("aria-expanded", String(on));
    });
    more.hidden = true;
    const box = el("div", { cls: "picture" }, screen.node, more);
    if (!whole) { draw(); return box; }
    const details = el("details", {}, el("summary", {}, t("The screen")), box);
    details.addEventListener("toggle", () => { if (details.open && !screen.rows.children.length) draw(); });
    return details;
  }

  async colour(screen, more) {
    try {
      if (!this.prompt.constraints.secret && offers("screen")) screen.draw(await get(`/sessions/${this.prompt.session_id}/screen?styled=true`));
    } catch { /* the plain text remains */ }
    requestAnimationFrame(() => { more.hidden = !screen.frame(); });
  }

  foot() {
    const why = el("details", {}, el("summary", {}, t("Why was I asked?")), el("table", {}, el("tbody", {},
      ...(this.prompt.evidence || []).map((item) => el("tr", {}, el("td", {}, item.signal), el("td", {}, String(item.score)), el("td", {}, item.detail))))));
    const report = el("button", { type: "button", cls: "quiet report", on: { click: () => this.report(report) } }, t("Not a prompt"));
    return el("div", { cls: "card-foot" }, this.late, this.can && offers("report") ? report : null, this.prompt.evidence?.length ? why : null, offers("later") ? laterBox(this.prompt, ways(this.prompt)) : null);
  }

  async report(button) {
    button.disabled = true;
    try {
      await post(`/prompts/${this.prompt.prompt_id}/report`);
      button.textContent = t("Reported, thank you");
    } catch (error) {
      button.disabled = false;
      toast(error.message);
    }
  }

  async answer(value, asText = false, label = value) {
    if (this.busy || !this.can) return;
    this.lock(true);
    if (await give(this.prompt, { value, asText, label }, (sentence, tone) => this.say(sentence, tone))) keep?.removeItem(`draft-${this.prompt.prompt_id}`);
    else this.lock(false);
  }

  lock(on) {
    this.busy = on;
    for (const part of [this.answers, this.bar]) for (const control of part.querySelectorAll("button, input, textarea")) control.disabled = on;
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
    this.stages.replaceChildren(...stageItems(reached));
  }
}

const stageItems = (reached) => STAGES.map((name, at) => el("li", { cls: at <= reached ? "done" : "" }, stageName(name)));

// What became of an answer of this browser, in one line that stays in sight while the next card is read.
export function receiptLine({ prompt, sentence, stage }, close) {
  const own = myAnswer(prompt.prompt_id);
  const reached = STAGES.indexOf(stage);
  const lost = mineLost(prompt);
  const bad = Boolean(lost) || ["still_there", "failed", "expired"].includes(stage);
  const said = lost ? lost.textContent : reached >= 0 || !sentence ? t("“{label}” to {name}", { label: prompt.answer?.label || own?.label || "", name: nameOf(prompt) }) : sentence;
  return el("div", { cls: `receipt ${bad ? "bad" : ""}`, role: "status", "data-receipt": prompt.prompt_id },
    el("a", { href: `#prompt/${prompt.prompt_id}`, title: sentenceOf(prompt) }, said),
    reached >= 0 && !lost ? el("ol", { cls: "stages", "aria-label": t("What became of the answer") }, ...stageItems(reached)) : null,
    el("button", { type: "button", cls: "quiet close", "aria-label": t("Close"), on: { click: close } }, "×"));
}

// Which answer, by whom, when; and to whom this browser's own answer lost.
export function verdict(prompt) {
  const answer = prompt.answer;
  if (!answer) return null;
  return el("p", { cls: "verdict" }, t("Answer: "), el("strong", {}, `“${answer.label}”`), el("span", { cls: "who" }, t(" by {who}", { who: by(answer.by) })),
    el("time", { datetime: answer.at, title: moment(answer.at) }, t(" at {time}", { time: time(answer.at) })));
}

function mineLost(prompt) {
  const own = myAnswer(prompt.prompt_id);
  if (!own || own.state === "used") return null;
  if (own.state === "sending" || own.state === "unknown") return el("div", { cls: "word warn", role: "status" }, t("It is not known yet whether your “{label}” was used.", { label: own.label }));
  const first = prompt.answer ? t("{who} answered “{label}” first.", { who: by(prompt.answer.by), label: prompt.answer.label }) : own.sentence || t("It came too late.");
  return el("div", { cls: "word bad", role: "status" }, `${t("Your answer “{label}” was not used.", { label: own.label })} ${first}`);
}

// A person who keeps the log's head can tell later that the log was not rewritten.
const anchor = (head) => head ? el("small", { cls: "anchor", title: t("The audit log when this was settled: entries and hash") }, t("audit {head}", { head })) : null;

export function overCard({ prompt, sentence, stage, head }) {
  const who = by(prompt.decided_by);
  const bad = ["still_there", "failed", "expired"].includes(stage);
  const reached = STAGES.indexOf(stage);
  const words = reached >= 0 && prompt.answer ? "" : sentence || (who ? t("Answered by {who}.", { who }) : t("No longer asked."));
  return el("article", { cls: "card over", "data-settled": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, nameOf(prompt)), el("small", {}, folder(prompt.session?.cwd)),
      who && !prompt.answer ? el("small", { cls: "who" }, t("by {who}", { who })) : null),
    el("div", { cls: "about" }, ...asked(prompt), effectsOf(prompt)), verdict(prompt), mineLost(prompt),
    reached >= 0 ? el("ol", { cls: "stages", "aria-label": t("What became of the answer") }, ...stageItems(reached)) : null,
    words ? el("div", { cls: `word ${bad ? "bad" : ""}`, role: "status" }, words) : null, anchor(head));
}

// Its time is over, nothing was typed, and it is still on the screen.
export function lateCard(prompt) {
  const again = el("button", { type: "button", cls: "main", on: { click: async () => {
    again.disabled = true;
    try { await post(`/prompts/${prompt.prompt_id}/again`); } catch (error) { again.disabled = false; toast(error.message); }
  } } }, t("Ask again"));
  return el("article", { cls: "card late", "data-late": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, nameOf(prompt)), el("small", {}, folder(prompt.session?.cwd)), el("span", { cls: "tag warn" }, t("still waiting"))),
    el("div", { cls: "about" }, ...asked(prompt)), el("div", { cls: "word warn" }, t("Nobody answered in time and nothing was typed. The tool still shows the question.")),
    el("div", { cls: "row" }, may("answer") ? again : null, el("a", { href: `#session/${prompt.session_id}` }, t("Look at its screen"))));
}
