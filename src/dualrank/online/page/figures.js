// What each figure shows of the state, and the sentence that says the same.

import { Chart, clockTicks, ticks } from "./chart.js";
import { clock, count, make, percent, write } from "./words.js";

const POSITIONS = [2, 4, 7, 10];
const charts = new Map();

export function drawFigures(state) {
  const rounds = state.rounds || [];
  const span = spanOf(state, rounds);
  const changes = (state.demo?.truths || []).slice(1);
  const rules = changes.map((each, i) => ({
    name: `change ${each.time}`, kind: "rule", look: "change", at: each.time,
    label: i === changes.length - 1 ? "users change" : "",
  }));
  drawCurve(state, rounds.at(-1));
  drawQuality(state, span, rules);
  drawPast(state, rounds, span, rules);
  drawWorth(rounds, span, rules);
  drawRibbon(state, span);
}

function show(id, what, said, height) {
  const figure = document.getElementById(id);
  figure.hidden = false;
  if (!charts.has(id)) charts.set(id, new Chart(figure.querySelector("svg"), height));
  charts.get(id).draw({ said, ...what });
  write(figure.querySelector("figcaption"), said);
}

function wait(id, said) {
  write(document.getElementById(id).querySelector("figcaption"), said);
}

function spanOf(state, rounds) {
  const times = [rounds[0]?.time, state.demo?.quality?.[0]?.time, state.demo?.truths?.[0]?.time].filter(Boolean);
  const to = Math.max(state.time || 0, rounds.at(-1)?.time || 0, state.demo?.quality?.at(-1)?.time || 0);
  const from = times.length ? Math.min(...times) : to - 60;
  return { from: Math.min(from, to - 30), to, ticks: clockTicks(Math.min(from, to - 30), to, 4) };
}

function drawCurve(state, round) {
  const learned = round?.examination?.length ? round.examination : state.demo?.start;
  if (!learned) return wait("curve", "The first round of learning has not ended yet.");
  const truth = state.demo?.examination;
  const start = state.demo?.start;
  const points = (values) => values.map((value, i) => [i + 1, value]);
  const layers = [];
  if (truth) layers.push({ name: "truth", kind: "line", look: "truth", points: points(truth), label: "truth" });
  if (round?.low?.length) {
    const band = round.low.map((low, i) => [i + 1, low, Math.min(round.high[i] ?? low, 1.5)]);
    layers.push({ name: "interval", kind: "band", look: "learned", points: band });
  }
  if (start) layers.push({ name: "start", kind: "line", look: "frozen", points: points(start), label: "at start" });
  layers.push({ name: "learned", kind: "line", look: "learned", points: points(learned), label: "learned" });
  layers.push({ name: "places", kind: "dots", look: "learned", points: points(learned) });
  const top = Math.max(1, ...learned, ...(round?.high || []).map((each) => Math.min(each, 1.2)));
  const last = learned.length;
  const interval = round?.low?.length ? between(round.low[last - 1], round.high[last - 1]) : "";
  let said = `Position ${last} is examined ${percent(learned[last - 1])} as often as the first${interval}.`;
  if (truth) said += ` The broad grey line is the truth, which only a simulation knows: ${percent(truth[last - 1])}.`;
  const what = {
    x: { from: 1, to: last, ticks: learned.map((_, i) => [i + 1, String(i + 1)]) },
    y: { from: 0, to: top, ticks: ticks(0, top).map(([at, text]) => [at, text]) },
    layers, room: 54,
  };
  show("curve", what, said, 260);
  tabulate(learned, round, truth);
}

// An interval without an end is given as a very large number.
function between(low, high) {
  return high > 2 ? ` (at least ${percent(low)})` : ` (95% interval ${percent(low)} to ${percent(high)})`;
}

function tabulate(learned, round, truth) {
  const table = document.querySelector("#curve table");
  if (!table.closest("details").open) return;
  const heads = ["position", "learned", "from", "to", ...(truth ? ["truth"] : [])];
  const row = (tag, cells) => make("tr", "", ...cells.map((cell) => make(tag, "", cell)));
  const rows = learned.map((value, i) => {
    const cells = [i + 1, value, round?.low?.[i], round?.high?.[i], ...(truth ? [truth[i]] : [])];
    return row("td", cells.map((cell, j) => (j === 0 ? cell : cell === undefined ? "–" : cell.toFixed(3))));
  });
  table.replaceChildren(make("thead", "", row("th", heads)), make("tbody", "", ...rows));
}

function drawQuality(state, span, rules) {
  const series = state.demo?.quality || [];
  if (!series.length) return;
  const all = series.flatMap((each) => [each.shown, each.frozen]);
  const y = roomy(Math.min(...all), Math.max(...all), 0.02);
  const latest = series.at(-1);
  const ahead = latest.shown - latest.frozen;
  const layers = [
    ...rules,
    { name: "frozen", kind: "line", look: "frozen", points: series.map((each) => [each.time, each.frozen]), label: "frozen" },
    { name: "shown", kind: "line", look: "learned", points: series.map((each) => [each.time, each.shown]), label: "learning" },
  ];
  const said =
    `What learns while users click shows lists of nDCG@10 ${latest.shown.toFixed(3)}, ` +
    `${Math.abs(ahead).toFixed(3)} ${ahead < 0 ? "below" : "above"} the model of the start, which stays as it was.`;
  show("quality", { x: span, y, layers, room: 54 }, said, 260);
}

function drawPast(state, rounds, span, rules) {
  const known = rounds.filter((each) => each.examination?.length);
  if (!known.length) return wait("past", "The first round of learning has not ended yet.");
  const depth = known.at(-1).examination.length;
  const positions = POSITIONS.filter((each) => each <= depth);
  const layers = [...rules, ...alarmRules(state, span)];
  const floor = 0.004;
  const at = (values, position) => Math.max(values[position - 1], floor);
  for (const position of positions) {
    const truths = (state.demo?.truths || []).map((each) => [each.time, at(each.examination, position)]);
    if (truths.length) {
      truths.push([span.to, truths.at(-1)[1]]);
      layers.push({ name: `truth ${position}`, kind: "steps", look: "truth", points: truths });
    }
  }
  for (const position of positions) {
    const has = known.filter((each) => each.examination.length >= position);
    const inside = has.filter((each) => each.low?.length >= position);
    layers.push({
      name: `band ${position}`, kind: "band", look: "learned",
      points: inside.map((each) => [each.time, at(each.low, position), Math.min(at(each.high, position), 2)]),
    });
    layers.push({
      name: `line ${position}`, kind: "line", look: "learned", label: String(position),
      points: has.map((each) => [each.time, at(each.examination, position)]),
    });
  }
  const values = layers.flatMap((each) => (each.points && each.kind !== "band" ? each.points.map(([, y]) => y) : []));
  const from = Math.max(Math.min(...values, 0.5) / 1.35, floor);
  for (const { points } of layers.filter((each) => each.kind === "band")) {
    for (const point of points) point[1] = Math.max(point[1], from);
  }
  const shown = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1].filter((each) => each >= from);
  const y = { from, to: 1.7, log: true, ticks: shown.map((each) => [each, String(each)]) };
  const last = known.at(-1).examination;
  let said = `Now ${positions.map((each) => `${percent(last[each - 1])} at position ${each}`).join(", ")}.`;
  if (state.demo?.examination) {
    const off = Math.max(...last.map((value, i) => Math.abs(state.demo.examination[i] / value - 1)));
    said += ` The weight that is furthest from the truth is off by ${percent(off)}.`;
  }
  show("past", { x: span, y, layers, room: 12 }, said, 260);
}

function alarmRules(state, span) {
  const moved = (state.alarms || []).filter((each) => each.kind === "curve" && each.time >= span.from);
  return moved.map((each, i) => ({
    name: `alarm ${each.time}`, kind: "rule", look: "moved", at: each.time,
    label: i === moved.length - 1 ? "alarm" : "", low: true,
  }));
}

function drawWorth(rounds, span, rules) {
  const known = rounds.filter((each) => each.worth !== null && each.worth !== undefined);
  if (!known.length) return wait("worth", "Not measured yet.");
  const has = known.filter((each) => each.worth_low !== null && each.worth_low !== undefined);
  const all = known.map((each) => each.worth);
  // An interval that is far wider than what is seen would flatten everything.
  const top = Math.min(Math.max(...all, ...has.map((each) => each.worth_high)), 2 * Math.max(...all));
  const y = roomy(Math.min(...all, ...has.map((each) => each.worth_low)), top, 0.05);
  const layers = [
    ...rules,
    { name: "interval", kind: "band", look: "worth", points: has.map((each) => [each.time, each.worth_low, Math.min(each.worth_high, y.to)]) },
    { name: "worth", kind: "line", look: "worth", points: known.map((each) => [each.time, each.worth]) },
  ];
  const latest = known.at(-1);
  const interval = has.length ? ` (95% interval ${latest.worth_low?.toFixed(2)} to ${latest.worth_high?.toFixed(2)})` : "";
  const said = `${latest.worth.toFixed(2)} corrected clicks a session in the latest round${interval}: what lists earn, wherever in them it stands. To be compared while users keep their habits.`;
  show("worth", { x: span, y, layers }, said, 260);
}

function drawRibbon(state, span) {
  const happened = state.happened || [];
  const went = happened.filter((each) => each.what === "live");
  if (!went.length) return;
  const x = { ...span, from: Math.min(span.from, Math.max(went[0].time, span.from - 60)) };
  const states = new Map((state.versions || []).map((each) => [each.number, each.state]));
  const layers = [];
  went.forEach((each, i) => {
    const to = went[i + 1]?.time ?? span.to;
    if (to <= x.from) return;
    const look = states.get(each.version) === "taken back" ? "bad" : i === went.length - 1 ? "live" : "past";
    layers.push({ name: `live ${i} ${each.time}`, kind: "bar", look, from: Math.max(each.time, x.from), to, row: 1, label: String(each.version) });
  });
  const refused = happened.filter((each) => each.what === "refused" && each.time >= x.from);
  layers.push({ name: "refused", kind: "dots", look: "refused", points: refused.map((each) => [each.time, 0]) });
  const live = went.at(-1);
  let said = `Version ${live.version} since ${clock(live.time)}; the bars say which version was in front of users.`;
  if (refused.length) said += ` Dots are ${count(refused.length)} that held-out clicks refused.`;
  const y = { from: -0.6, to: 1.5, ticks: [] };
  show("ribbon", { x, y, layers, height: refused.length ? 92 : 78 }, said, 78);
}

function roomy(low, high, least) {
  const missing = Math.max(least - (high - low), 0) / 2;
  const room = (high - low + 2 * missing) * 0.12;
  const [from, to] = [Math.max(low - missing - room, 0), high + missing + room];
  return { from, to, ticks: ticks(from, to) };
}
