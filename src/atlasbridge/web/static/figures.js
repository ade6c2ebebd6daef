// Figures: how many, how fast, by whom.

import { get } from "/api.js";
import { el, empty, show, svg } from "/dom.js";
import { by } from "/words.js";
import { t } from "/language.js";

export function figuresView(main) {
  const body = el("div", { cls: "stack" });
  show(main, el("div", { cls: "head" }, el("h1", {}, t("Figures"))), body);
  get("/statistics").then((data) => {
    const days = data.days || [];
    const wait = data.answer_s || { count: 0, buckets: [] };
    const reported = data.reported || {};
    show(body, facts([[t("prompts"), days.reduce((sum, day) => sum + day.raised, 0)], [t("median wait"), span(wait.median)], [t("9 of 10 within"), span(wait.p90)],
      [t("false alarms reported"), reported.not_a_prompt || 0], [t("missed ones reported"), reported.missed || 0]]),
    el("div", { cls: "plots" },
      bars(t("Prompts per day"), days.map((day) => [day.day.slice(5), day.raised, day.answered]), t("raised, of which answered")),
      bars(t("Time to answer"), (wait.buckets || []).map(([upper, count]) => [upper === null ? t("more") : `≤ ${span(upper)}`, count]), t("answers")),
      ranks(t("Who answered"), Object.fromEntries(Object.entries(data.answered_by || {}).map(([name, count]) => [by(name) || t("nobody"), count]))), ranks(t("What was asked"), data.types || {})));
  }, (error) => show(body, empty(error.message)));
  return () => {};
}

const span = (seconds) => (seconds === undefined || seconds === null ? "–" : seconds < 90 ? t("{count} s", { count: Math.round(seconds) }) : seconds < 5400 ? t("{count} min", { count: Math.round(seconds / 60) }) : t("{count} h", { count: Math.round(seconds / 3600) }));

const facts = (rows) => el("dl", { cls: "facts" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));

function plot(title, drawing, rows) {
  return el("figure", { cls: "panel plot" }, el("figcaption", {}, title), rows.length ? drawing : el("small", {}, t("Nothing yet.")),
    rows.length ? el("details", {}, el("summary", {}, t("As a table")), el("table", {}, el("tbody", {},
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
