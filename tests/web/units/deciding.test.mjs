// What decides on the page, without a browser: which answers stand where, which prompt is next, what is folded, what was heard.
import assert from "node:assert/strict";
import { test } from "node:test";

const { allowed, answerLabel, bar, bySoonest, canBeMarked, isPermission, labelOf, nextOf, pick } = await import("/answering.js");
const { effectWords, fold, oneLine, questionLine } = await import("/subject.js");
const { t, useTexts } = await import("/words.js");
const { learn, prompts, settled, setMine } = await import("/model.js");
const { encode } = await import("/typing.js");
const { splitWords } = await import("/sessions.js");

const prompt = (more = {}) => ({
  prompt_id: "p1", session_id: "s1", type: "multiple_choice", state: "awaiting_reply", question: "Do you want to proceed?", excerpt: "", whole: true,
  constraints: {}, created_at: "2026-01-01T00:00:00Z", expires_at: "2026-01-01T00:10:00Z", subject: null,
  choices: [{ value: "1", label: "Yes" }, { value: "2", label: "Yes, always", always: true }, { value: "3", label: "No", refuses: true }], ...more,
});

test("No and Yes stand in the bar, always does not", () => {
  const { no, yes, rest } = bar(prompt());
  assert.deepEqual([no.value, yes.value, rest.map((choice) => choice.value)], ["3", "1", ["2"]]);
});

test("two plain choices have no Yes", () => {
  const choices = [{ value: "1", label: "Left" }, { value: "2", label: "Right" }, { value: "3", label: "Cancel", refuses: true }];
  assert.equal(bar(prompt({ choices })).yes, null);
  assert.equal(bar(prompt({ choices })).no.value, "3");
});

test("where the hook and the screen disagree, only refusing is offered", () => {
  const doubtful = prompt({ constraints: { disagrees: true } });
  assert.deepEqual(allowed(doubtful).map((choice) => choice.value), ["3"]);
  assert.equal(pick("y", doubtful), undefined);
  assert.equal(pick("1", doubtful), undefined);
  assert.equal(pick("n", doubtful).value, "3");
  assert.equal(bar(doubtful).yes, null);
});

test("a key that is not certain means nothing", () => {
  const two = prompt({ choices: [{ value: "a", label: "No", refuses: true }, { value: "b", label: "Never", refuses: true }] });
  assert.equal(pick("n", two), null);
  assert.equal(pick("y", two), undefined);
  assert.equal(pick("2", prompt()).value, "2");
});

test("what is not whole, secret, or needs a passkey cannot be answered with others", () => {
  assert.equal(canBeMarked(prompt()), true);
  for (const more of [{ whole: false }, { constraints: { secret: true } }, { constraints: { proof: {} } }, { constraints: { idle: true } }, { constraints: { disagrees: true } }, { may_answer: false }, { type: "unknown" }]) assert.equal(canBeMarked(prompt(more)), false, JSON.stringify(more));
});

test("a permission is one also where its subject is not known", () => {
  assert.equal(isPermission(prompt()), true);
  assert.equal(isPermission(prompt({ choices: [{ value: "1", label: "Red" }] })), false);
});

test("the soonest deadline comes first, and what only rests comes last", () => {
  const [late, soon, idle] = [prompt({ prompt_id: "late" }), prompt({ prompt_id: "soon", expires_at: "2026-01-01T00:01:00Z" }), prompt({ prompt_id: "idle", expires_at: "2026-01-01T00:00:10Z", constraints: { idle: true } })];
  assert.deepEqual([late, idle, soon].sort(bySoonest).map((one) => one.prompt_id), ["soon", "late", "idle"]);
  assert.equal(nextOf([late, idle, soon], "soon").prompt_id, "late");
  assert.equal(nextOf([], ""), null);
});

test("a fold covers every row, shows both ends and the dangerous rows, and hides at least two", () => {
  for (const size of [0, 1, 13, 14, 15, 40, 5000]) {
    const rows = Array.from({ length: size }, (_, at) => at);
    const parts = fold(rows, (row) => row === 20);
    assert.equal(parts.reduce((sum, [from, to]) => sum + to - from, 0), size);
    parts.forEach(([from], at) => assert.equal(from, at ? parts[at - 1][1] : 0));
    if (size > 13) assert.ok(parts[0][2] && parts.at(-1)[2]);
    if (size > 30) assert.ok(parts.some(([from, to, shown]) => shown && from <= 20 && to > 20));
    assert.ok(parts.every(([from, to, shown]) => shown || to - from > 1));
  }
});

test("a question without words is asked in words", () => {
  assert.equal(questionLine(prompt({ question: "1) Yes\n2) Yes, always\n3) No\n#?" })), "Which one?");
  assert.equal(questionLine(prompt()), "Do you want to proceed?");
});

test("what a command does is one line, and unknown kinds are left out", () => {
  const told = prompt({ constraints: { effects: [{ kind: "sends", target: "x.example" }, { kind: "toString" }, { kind: "deletes" }] } });
  assert.deepEqual(effectWords(told), ["sends data to x.example", "deletes files"]);
  assert.deepEqual(effectWords(prompt({ subject: { kind: "edit", text: " 1 +a\n 2 +b\n 3 -c" } })), ["+2 −1 lines"]);
});

test("a list shows the command, not the question", () => {
  assert.deepEqual(oneLine(prompt({ subject: { kind: "command", text: "rm x\n" } })), { kind: "command", text: "rm x" });
});

test("a receipt that comes late takes nothing back", () => {
  const over = prompt({ state: "resolved" });
  prompts.set("p1", prompt());
  setMine("p1", { label: "Yes", state: "used" });
  learn(over, { sentence: "", stage: "taken", audit_head: "" });
  learn(over, { sentence: "", stage: "received", audit_head: "" });
  assert.equal(settled[0].stage, "taken");
  learn(over, { sentence: "It is still there.", stage: "still_there", audit_head: "" });
  assert.equal(settled[0].stage, "still_there");
});

test("texts have holes and two forms, and English where nothing else is known", () => {
  useTexts({ "1 more line|{count} more lines": "1 weitere Zeile|{count} weitere Zeilen", "toString": "nein" });
  assert.equal(t("1 more line|{count} more lines", { count: 1 }), "1 weitere Zeile");
  assert.equal(t("1 more line|{count} more lines", { count: 7 }), "7 weitere Zeilen");
  assert.equal(t("{name} asks", { name: "{count}" }), "{count} asks");
  useTexts({});
});

test("what we named is said in the reader's language, and a tool's own words are not touched", () => {
  const asked = prompt({ type: "yes_no", choices: [{ value: "y", label: "Yes" }, { value: "n", label: "No", refuses: true }, { value: "a", label: "all" }] });
  const gave = (kind, value, label) => answerLabel({ ...asked, answer: { kind, value, label } });
  useTexts({ Yes: "Ja", No: "Nein", "none of them": "keine davon" });
  assert.deepEqual(asked.choices.map(labelOf), ["Ja", "Nein", "all"]);
  assert.deepEqual(prompt().choices.map(labelOf), ["Yes", "Yes, always", "No"]);
  assert.deepEqual([gave("choice", "y", "Yes"), gave("no", "n", "No"), gave("choices", "y,a", "Yes, all"), gave("choices", "", "none of them")], ["Ja", "Nein", "Ja, all", "keine davon"]);
  assert.deepEqual([gave("text", "Yes", "Yes"), gave("choice", "7", "seven"), gave("enter", "", "Enter")], ["Yes", "seven", "Enter"]);
  assert.equal(labelOf({ value: "constructor", label: "name" }), "name");
  assert.equal(pick("y", asked).value, "y");
  useTexts({});
});

test("keys are what a terminal sends", () => {
  assert.equal(encode("Tab", { shift: true }), "\x1b[Z");
  assert.equal(encode("c", { ctrl: true }), "\x03");
  assert.equal(encode("ArrowUp", {}, [1]), "\x1bOA");
});

test("arguments are split as a shell would", () => {
  assert.deepEqual(splitWords("--model 'big one' a\\ b"), ["--model", "big one", "a b"]);
  assert.equal(splitWords("'open"), null);
});
