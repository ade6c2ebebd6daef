// History, audit log and figures: three views that only read.

import { get } from "/api.js";
import { PLAIN, el, empty, show, svg } from "/dom.js";
import { STATE, ago, by, folder, moment, short } from "/words.js";

const TONE = { resolved: "good", failed: "bad", expired: "warn" };

export function historyView(main) {
  const search = el("input", { type: "search", placeholder: "Search questions, tools, folders, people", "aria-label": "Search the history", ...PLAIN });
  const list = el("ul", { cls: "list" });
  const more = el("button", { type: "button", hidden: true }, "Show older ones");
  show(main, el("div", { cls: "head" }, el("h1", {}, "History")), el("div", { cls: "stack" }, search, list, more));
  let turn = 0;

  async function load(before) {
    const mine = ++turn;
    const query = new URLSearchParams({ search: search.value.slice(0, 200), limit: "30", before });
    const { prompts } = await get(`/history?${query}`).catch(() => ({ prompts: [] }));
    if (mine !== turn) return;
    if (!before) show(list, prompts.length ? [] : empty("Nothing found."));
    list.append(...prompts.map(entry));
    more.hidden = prompts.length < 30;
    more.onclick = () => load(prompts[prompts.length - 1].prompt_id);
  }

  let pause;
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(() => load(""), 200); });
  load("");
  return () => clearTimeout(pause);
}

function entry(prompt) {
  const session = prompt.session || {};
  const who = by(prompt.decided_by);
  return el("li", { cls: "item", "data-prompt": prompt.prompt_id },
    el("div", { cls: "row" }, el("strong", {}, session.tool || "a program"), el("span", { cls: `tag ${TONE[prompt.state] || ""}` }, STATE[prompt.state] || prompt.state)),
    el("p", {}, prompt.excerpt), prompt.answer ? el("p", { cls: "verdict" }, "Answer: ", el("strong", {}, `“${prompt.answer.label}”`)) : null,
    el("small", { title: moment(prompt.created_at) }, [ago(prompt.created_at), folder(session.cwd), who && `by ${who}`, short(prompt.prompt_id)].filter(Boolean).join(" · ")));
}

export function auditView(main) {
  const state = el("div", { cls: "word", role: "status" }, "Checking the chain…");
  const list = el("ul", { cls: "list" });
  const more = el("button", { type: "button", hidden: true }, "Show older ones");
  show(main, el("div", { cls: "head" }, el("h1", {}, "Audit log")), el("div", { cls: "stack" }, state, list, more));
  get("/audit/state").then((head) => {
    state.className = `word ${head.ok ? "good" : "bad"}`;
    state.textContent = `${head.ok ? "The chain is whole" : "THE CHAIN IS BROKEN"}: ${head.count} entries, head ${String(head.hash).replace("sha256:", "").slice(0, 12)}. ${head.ok ? "" : head.detail}`;
  }, (error) => { state.textContent = error.message; });

  async function load(before) {
    const { entries } = await get(`/audit?limit=50&before=${before}`).catch(() => ({ entries: [] }));
    list.append(...entries.map(auditEntry));
    more.hidden = entries.length < 50;
    more.onclick = () => load(entries[entries.length - 1].seq);
  }
  load(0);
  return () => {};
}

function auditEntry(record) {
  const { seq, event, hash, prev_hash: before, ts, ...rest } = record;
  const words = [moment(ts), rest.decided_by || rest.identity].filter(Boolean).join(" · ");
  return el("li", {}, el("details", { cls: "item entry" },
    el("summary", {}, el("strong", {}, String(event)), el("small", {}, words), el("small", { cls: "end" }, `#${seq}`)),
    el("pre", { cls: "term" }, JSON.stringify({ ...rest, prev_hash: before, hash }, null, 1))));
}

export function figuresView(main) {
  const body = el("div", { cls: "stack" });
  show(main, el("div", { cls: "head" }, el("h1", {}, "Figures")), body);
  get("/statistics").then((data) => {
    const days = data.days || [];
    const wait = data.answer_s || { count: 0, buckets: [] };
    const reported = data.reported || {};
    show(body, facts([["prompts", days.reduce((sum, day) => sum + day.raised, 0)], ["median wait", span(wait.median)], ["9 of 10 within", span(wait.p90)],
      ["false alarms reported", reported.not_a_prompt || 0], ["missed ones reported", reported.missed || 0]]),
    el("div", { cls: "plots" },
      bars("Prompts per day", days.map((day) => [day.day.slice(5), day.raised, day.answered]), "raised, of which answered"),
      bars("Time to answer", (wait.buckets || []).map(([upper, count]) => [upper === null ? "more" : `≤ ${span(upper)}`, count]), "answers"),
      ranks("Who answered", data.answered_by || {}), ranks("What was asked", data.types || {})));
  }, (error) => show(body, empty(error.message)));
  return () => {};
}

const span = (seconds) => (seconds === undefined || seconds === null ? "–" : seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

const facts = (rows) => el("dl", { cls: "facts" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));

function plot(title, drawing, rows) {
  return el("figure", { cls: "panel plot" }, el("figcaption", {}, title), rows.length ? drawing : el("small", {}, "Nothing yet."),
    rows.length ? el("details", {}, el("summary", {}, "As a table"), el("table", {}, el("tbody", {},
      ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, String(cell)))))))) : null);
}

function bars(title, rows, about) {
  const [width, height] = [420, 150];
  const top = Math.max(1, ...rows.map((row) => row[1]));
  const step = width / Math.max(1, rows.length);
  const every = Math.ceil(rows.length / 7);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": `${title}: ${about}` },
    svg("line", { cls: "axis", x1: 0, x2: width, y1: height, y2: height }),
    svg("text", { x: 0, y: 10 }, String(top)),
    ...rows.flatMap(([name, all, part], at) => {
      const bar = (value, cls) => svg("rect", { cls, x: (at * step + step * 0.14).toFixed(1), width: (step * 0.72).toFixed(1), rx: 3,
        y: (height - (value / top) * (height - 16)).toFixed(1), height: ((value / top) * (height - 16)).toFixed(1) }, svg("title", {}, `${name}: ${value}`));
      return [bar(all, part === undefined ? "bar" : "bar part"), part === undefined ? null : bar(part, "bar"),
        at % every === 0 ? svg("text", { x: (at * step + step / 2).toFixed(1), y: height + 16, "text-anchor": "middle" }, name) : null];
    }));
  return plot(title, drawing, rows);
}

function ranks(title, counts) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const top = Math.max(1, ...rows.map((row) => row[1]));
  const drawing = svg("svg", { viewBox: `0 0 420 ${rows.length * 38}`, role: "img", "aria-label": title },
    ...rows.flatMap(([name, count], at) => [
      svg("text", { x: 0, y: at * 38 + 12 }, name.slice(0, 48)), svg("text", { x: 420, y: at * 38 + 12, "text-anchor": "end" }, String(count)),
      svg("rect", { cls: "bar", x: 0, y: at * 38 + 18, height: 8, rx: 4, width: ((count / top) * 420).toFixed(1) })]));
  return plot(title, drawing, rows);
}
