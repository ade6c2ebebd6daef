// One prompt as a card: what it wants to do, where, and the ways to answer it.  No and Yes stand in a bar that never leaves
// the screen.

import { answerLabel, bar, disagrees, give, labelOf, ways } from "/answering.js";
import { call, get, may, offers, post } from "/api.js";
import { el, PLAIN, show, speak, svg, toast, unbroken } from "/dom.js";
import { myAnswer, prompts, receipt, subscribe } from "/model.js";
import { proofNote } from "/passkey.js";
import { Screen } from "/screen.js";
import { asked, effectsOf, sentence as sentenceOf } from "/subject.js";
import { by, clock, CONFIDENCE, folder, left, moment, nameOf, stored, t, time } from "/words.js";

const ROUND = 2 * Math.PI * 21;
const STAGES = ["received", "typed", "taken"];
const stageName = (stage) => ({ received: t("sent"), typed: t("typed"), taken: t("taken") })[stage];
const SURE_MS = [400, 6000]; // a second tap sooner than this was one tap; later than that, it is a first one again
const keep = stored("sessionStorage");

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

function heading(prompt, host) {
  const session = prompt.session || {};
  const [sure, tone] = CONFIDENCE()[prompt.confidence] || CONFIDENCE().low;
  const title = prompt.constraints.idle ? t("{name} has finished and waits for you", { name: nameOf(prompt) }) : t("{name} is asking", { name: nameOf(prompt) });
  const where = [prompt.machine, session.label ? askers()[session.tool] || session.tool : "", folder(session.cwd)].filter(Boolean).join(" · ");
  return el("div", { cls: "who-asks" },
    el("h2", { id: `h-${prompt.prompt_id}` }, title),
    el("small", { cls: "meta" }, el("a", { href: `#session/${prompt.session_id}`, title: host ? t("the session on {host}", { host }) : t("the session") }, where || t("the session")), " ",
      prompt.confidence === "high" ? null : el("span", { cls: `tag ${tone}`, title: t("how sure AtlasBridge is that this is a prompt") }, sure)));
}

// In the bar a label that goes on behind its first comma has its first words large and the rest small, and nothing is cut.
function headed(choice) {
  const label = labelOf(choice);
  const at = label.search(/[,，、]/) + 1;
  if (at < 1 || label.length < 25) return words(choice);
  return el("span", { cls: "label" }, label.slice(0, at), el("small", { cls: "detail" }, ...unbroken(label.slice(at))));
}

const words = (choice) => el("span", { cls: "label" }, ...unbroken(labelOf(choice)), choice.detail ? el("small", { cls: "detail" }, choice.detail) : null);

export class Card {
  constructor(prompt, host) {
    this.prompt = prompt;
    this.busy = false;
    this.ring = ring(prompt);
    const safe = ways(prompt).find((item) => item.value === prompt.safe_default);
    this.timerLabel = safe ? labelOf(safe) : prompt.safe_default;
    this.late = el("small", { cls: "late" });
    this.soon = el("p", { cls: "word warn soon", role: "timer", hidden: true });
    this.word = el("div", { cls: "word", role: "status", hidden: true });
    this.stages = el("ol", { cls: "stages", hidden: true, "aria-label": t("Progress of your answer") });
    this.can = may("answer") && prompt.may_answer !== false;
    this.sure = { value: "", at: -Infinity };
    const field = this.can && !disagrees(prompt) ? this.textField() : null;
    const choices = this.can ? this.choices() : null;
    this.answers = el("div", { cls: "stack" }, votes(prompt), proofNote(prompt), choices, prompt.choices.length ? field : null, this.can && offers("grant") ? grantPanel(prompt) : null);
    this.bar = this.can ? this.decide(prompt.choices.length ? null : field) : el("p", { cls: "word" }, prompt.may_answer === false ? t("You can see this, but not answer it.") : t("This browser can only view. For a link that can answer, run: atlasbridge web"));
    const hint = el("small", {}, prompt.constraints.idle ? t("It is idle and asks nothing. To press keys, open its session.") : t("Read the screen first. To press keys in a full-screen program, open its session."));
    const about = prompt.type === "unknown" ? [hint, this.picture(), this.answers] : [this.answers, this.picture()];
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
    this.late.hidden = soon || (!label && Boolean(this.prompt.constraints.idle));
    this.soon.hidden = !soon;
    if (soon) this.soon.textContent = rest > 0 ? t("In {time} a timer answers “{label}”, unless somebody answers first.", { label, time: clock(rest) }) : t("A timer answers “{label}” now, unless the terminal is in use.", { label });
  }

  // What stands in the bar: No on the left, Yes on the right; a field where only words are an answer.
  decide(field) {
    const { no, yes } = bar(this.prompt);
    const several = this.prompt.constraints.multi_select && this.boxes ? el("button", { type: "button", cls: "main send-marked", on: { click: () => this.sendMarked() } }, t("Send selection")) : null;
    const button = (choice, cls) => el("button", { type: "button", "data-value": choice.value, cls: `choice ${cls}`, on: { click: () => this.choose(choice) } }, headed(choice));
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
    if (!choice.always || again) return this.answer(choice.value, false, labelOf(choice));
    if (this.sure.value !== choice.value || now - this.sure.at >= SURE_MS[1]) this.sure = { value: choice.value, at: now };
    return this.say(t("AtlasBridge will not ask this again: “{label}”. Press it once more to confirm.", { label: labelOf(choice) }), "warn");
  }

  several(offered) {
    const marks = offered.filter((choice) => !choice.refuses);
    this.boxes = marks.map((choice) => { const box = el("input", { type: "checkbox", value: choice.value }); box.checked = Boolean(choice.default); return [box, choice]; });
    return el("div", { cls: "choices" }, ...this.boxes.map(([box, choice]) => el("label", { cls: "choice button" }, box, words(choice))));
  }

  sendMarked() {
    const chosen = this.boxes.filter(([box]) => box.checked).map(([, choice]) => choice);
    this.answer(chosen.map((choice) => choice.value).join(",") || "none", false, chosen.map(labelOf).join(", ") || t("none of them"));
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
      this.keys());
  }

  fieldLabel(secret) {
    const fields = this.prompt.constraints.fields;
    if (secret) return t("Secret (typed once, never stored)");
    if (this.prompt.constraints.idle) return this.prompt.constraints.commands ? t("Your next command") : t("Your next instruction");
    if (fields?.length && this.prompt.type === "free_text") return t("Its fields, for example: {example}", { example: fields.map((name) => `${name}: …`).join("; ") });
    return this.prompt.choices.length ? t("Or in your own words") : t("Your answer");
  }

  // Keys for a line that takes any text; where it is not known what is asked, the question can also be left as it is.
  keys() {
    if (this.prompt.constraints.secret || this.prompt.constraints.idle || this.prompt.choices.length || Object.hasOwn(askers(), this.prompt.session?.tool)) return null;
    const unknown = this.prompt.type === "unknown";
    const key = (value, label, shown) => el("button", { type: "button", "data-value": value, on: { click: () => this.answer(value, false, label) } }, shown);
    return el("div", { cls: "row keys", role: "group", "aria-label": t("Keys") },
      key("enter", t("Enter key"), unknown ? t("Send Enter") : "Enter"), key("esc", t("Esc key"), "Esc"), key("ctrl-c", t("Ctrl-C key"), "Ctrl-C"),
      unknown ? key("leave", t("Leave it alone"), t("Leave it alone")) : null,
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
  const told = lost ? lost.textContent : reached >= 0 ? "" : sentence;
  const said = told ? `${nameOf(prompt)}: ${told}` : t("“{label}” to {name}", { label: prompt.answer ? answerLabel(prompt) : own?.label || "", name: nameOf(prompt) });
  return el("div", { cls: `receipt ${bad ? "bad" : ""}`, role: "status", "data-receipt": prompt.prompt_id },
    el("a", { href: `#prompt/${prompt.prompt_id}`, title: sentenceOf(prompt) }, said),
    reached >= 0 && !lost ? el("ol", { cls: "stages", "aria-label": t("Progress of the answer") }, ...stageItems(reached)) : null,
    el("button", { type: "button", cls: "quiet close", "aria-label": t("Close"), on: { click: close } }, "×"));
}

// Which answer, by whom, when; and to whom this browser's own answer lost.
export function verdict(prompt) {
  const answer = prompt.answer;
  if (!answer) return null;
  return el("p", { cls: "verdict" }, t("Answer: "), el("strong", {}, `“${answerLabel(prompt)}”`), el("span", { cls: "who" }, t(" by {who}", { who: by(answer.by) })),
    el("time", { datetime: answer.at, title: moment(answer.at) }, t(" at {time}", { time: time(answer.at) })));
}

function mineLost(prompt) {
  const own = myAnswer(prompt.prompt_id);
  if (!own || own.state === "used") return null;
  if (own.state === "sending" || own.state === "unknown") return el("div", { cls: "word warn", role: "status" }, t("AtlasBridge does not know yet whether your “{label}” was used.", { label: own.label }));
  const first = prompt.answer ? t("{who} answered “{label}” first.", { who: by(prompt.answer.by), label: answerLabel(prompt) }) : own.sentence || t("Your answer arrived too late.");
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
    reached >= 0 ? el("ol", { cls: "stages", "aria-label": t("Progress of the answer") }, ...stageItems(reached)) : null,
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
    el("div", { cls: "about" }, ...asked(prompt)), el("div", { cls: "word warn" }, t("Nobody answered in time, so nothing was typed. The tool still shows the question.")),
    el("div", { cls: "row" }, may("answer") ? again : null, el("a", { href: `#session/${prompt.session_id}` }, t("View its screen"))));
}

// Allowing what a prompt asks for a while, from its card: first in words with examples, then for how long.

const spans = () => [
  [t("For 30 minutes"), { for_s: 1800 }], [t("5 times"), { times: 5 }], [t("In this session"), {}], [t("In this folder"), { folder: true }],
];

const examples = (made) => el("ul", { cls: "examples" },
  ...made.would.map((text) => el("li", { cls: "yes" }, el("span", { cls: "unseen" }, t("allows ")), el("code", {}, text))),
  ...made.would_not.map((text, at) => el("li", { cls: "no" }, el("span", { cls: "unseen" }, t("does not allow ")), el("code", {}, text), " ", el("small", {}, made.why_not?.[at] ?? ""))));

function grantPanel(prompt) {
  if (!prompt.grantable || !may("answer")) return null;
  const path = `/prompts/${prompt.prompt_id}/grant`;
  const body = el("div", { cls: "stack" }, el("small", {}, t("Loading …")));
  const panel = el("details", { cls: "granting" }, el("summary", {}, t("Allow for a while …")), body);
  let asked = false;

  async function preview() {
    if (!panel.open || asked) return;
    asked = true;
    try {
      const made = await post(path, { preview: true });
      show(body, el("p", {}, t("AtlasBridge would allow this without asking: "), el("strong", {}, made.shape), "."), examples(made),
        el("div", { cls: "spans", role: "group", "aria-label": t("For how long") }, ...spans().map(([label, limits]) => el("button", {
          type: "button", "data-span": label, on: { click: () => give(limits) },
        }, label))),
        el("small", {}, t("In this session, or in the folder if you choose it; for 12 hours at most. Rules that deny or ask still apply.")));
    } catch (error) {
      asked = error.status !== 0;
      show(body, el("p", { cls: "word" }, error.message));
    }
  }

  async function give(limits) {
    for (const button of body.querySelectorAll("button")) button.disabled = true;
    try {
      const made = await post(path, limits);
      toast(t("Granted: {words}.", { words: made.words }));
      show(body, el("p", { cls: "word good", role: "status" }, `${t("Granted: {words}.", { words: made.words })} `, el("a", { href: "#rules" }, t("See or revoke it")), "."));
    } catch (error) {
      for (const button of body.querySelectorAll("button")) button.disabled = false;
      toast(error.message);
    }
  }

  panel.addEventListener("toggle", preview);
  return panel;
}

// Where several people must agree: who has, and how many are missing, as they come.
function votes(prompt) {
  const wanted = prompt.constraints.quorum;
  if (!wanted) return null;
  const node = el("p", { cls: "word warn votes", role: "status" });
  const draw = (agreed) => {
    const missing = Math.max(0, wanted.approvals - agreed.length);
    const among = (wanted.person || []).filter((name) => !agreed.includes(name));
    const who = agreed.length ? t("{people} approved.", { people: agreed.join(", ") }) : "";
    const need = agreed.length ? t("One more person must approve|{count} more people must approve", { count: missing }) : t("1 person must approve|{count} people must approve", { count: missing });
    const whom = among.length ? ` ${t("of {people}", { people: among.join(", ") })}` : "";
    node.textContent = `${who} ${need}${whom} ${t("(rule {rule}).", { rule: wanted.rule })} ${t("One refusal denies it.")}`.trim();
  };
  let seen = false;
  const stop = subscribe((change) => {
    seen ||= node.isConnected;
    if (seen && !node.isConnected) stop();
    else if (change.prompt?.prompt_id === prompt.prompt_id) draw(change.prompt.agreed || []);
  });
  draw(prompt.agreed || []);
  return node;
}

// A card's "Later": an answer for another moment, being asked again in a while, and what is kept already, to be taken back.

const snoozes = () => [[t("In 15 minutes"), 900], [t("In an hour"), 3600]];
const LIMIT = "limit_resets_at";

// `offered`: the choices of the card; a text field of its own where words are taken.
function laterBox(prompt, offered) {
  if (!may("answer") || prompt.constraints.secret) return null;
  const kept = el("ul", { cls: "kept" });
  const box = el("details", { cls: "later" }, el("summary", {}, t("Later…")), kept, snoozing(prompt), answering(prompt, offered), atReset(prompt));
  const draw = () => {
    const now = prompts.get(prompt.prompt_id) || prompt;
    prompt.expires_at = now.expires_at; // what is kept for later gives it another end; the card's ring reads it here
    drawKept(kept, box, now);
  };
  const stop = subscribe(() => { if (box.isConnected || !kept.dataset.drawn) draw(); else stop(); });
  draw();
  return box;
}

function drawKept(list, box, prompt) {
  list.dataset.drawn = "yes";
  const items = (prompt.later || []).map((one) => el("li", { "data-later": one.later_id },
    one.kind === "snooze" ? t("Snoozed until {time} ({who})", { time: moment(one.due_at), who: one.by_name }) : t("Answers “{label}” {time} ({who})", { label: one.value, time: moment(one.due_at), who: one.by_name }),
    el("button", { type: "button", cls: "quiet take-back", on: { click: () => send(() => call("DELETE", `/later/${one.later_id}`)) } }, t("Remove"))));
  show(list, ...items);
  list.hidden = !items.length;
  if (items.length) box.open = true;
}

function snoozing(prompt) {
  return el("div", { cls: "row", role: "group", "aria-label": t("Ask me again") }, el("span", {}, t("Ask me again:")),
    ...snoozes().map(([label, seconds]) => el("button", { type: "button", cls: "quiet snooze", "data-s": seconds, on: { click: () => put(prompt, { for_s: seconds }, "snooze") } }, label)));
}

function answering(prompt, offered) {
  const single = !prompt.constraints.multi_select;
  const choices = single ? offered.filter((choice) => !choice.words) : [];
  if (!choices.length && !prompt.free_text) return null;
  const id = `later-${prompt.prompt_id}`;
  const what = choices.length
    ? el("select", { id, "aria-label": t("Answer") }, ...choices.map((choice) => el("option", { value: choice.value }, labelOf(choice))))
    : el("input", { id, type: "text", value: "continue", "aria-label": t("Answer"), maxlength: 1000 });
  const at = el("input", { type: "text", "aria-label": t("When"), placeholder: t("06:00, fri 12:00, in 2h"), autocomplete: "off", cls: "when" });
  const give = () => put(prompt, { value: what.value, as_text: !choices.length, when: at.value });
  return el("div", { cls: "row" }, el("label", { for: id }, t("Answer")), what, el("span", {}, t("at")), at,
    el("button", { type: "button", cls: "postpone", on: { click: give } }, t("Schedule")));
}

// Where the screen says when a usage limit is over, going on can be said now for then.
function atReset(prompt) {
  const resets = prompt.constraints[LIMIT];
  if (!resets || !prompt.free_text) return null;
  return el("button", { type: "button", cls: "main at-reset", on: { click: () => put(prompt, { value: "continue", as_text: true, when: "limit-resets" }) } },
    t("“continue” when the limit resets, {time}", { time: moment(resets) }));
}

const put = (prompt, body, what = "later") => send(() => post(`/prompts/${prompt.prompt_id}/${what}`, body));

async function send(request) {
  try {
    const told = await request();
    toast(told.message);
    speak(told.message);
  } catch (error) { toast(error.message); }
}
