// Curves, drawn by uPlot. The server sends as many pieces of a curve as the chart has pixels, each with its mean and
// its extremes: the line is the mean, the band around it reaches from the smallest to the largest value.

import { base, get } from "./api.js";
import { $, count, figure, fill, h, percent, scroll, table } from "./dom.js";
import { none } from "./words.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// shown is what the charts show: steps from one to another, null for all, or the last ones.
const shown = { from: null, to: null, last: 0, log: false };
const charts = new Map();

// groups decides which curves share a chart.
function groups(data) {
  const train = new Map(data.train.map((s) => [s.name, s]));
  const evaluation = new Map(data.evaluation.map((s) => [s.name, s]));
  const list = [];
  const used = new Set(["samples", "frames"]);
  const family = (title, test, unit) => {
    const lines = data.train.filter((s) => test(s.name)).sort((a, b) => (a.name === "step_ms" ? -1 : b.name === "step_ms" ? 1 : 0));
    lines.forEach((s) => used.add(s.name));
    if (lines.length) list.push({ key: title, title, unit, lines: lines.map((s) => ({ label: s.name, s })) });
  };
  const pair = (name, log) => {
    used.add(name);
    const lines = [];
    if (train.has(name)) lines.push({ label: "training", s: train.get(name), band: true });
    if (evaluation.has(name)) lines.push({ label: "evaluation", s: evaluation.get(name), points: true });
    const unit = evaluation.get(name)?.unit || train.get(name)?.unit;
    if (lines.length) list.push({ key: name, title: name, lines, log, unit });
  };
  const rest = [...train.keys()].filter((n) => !/^(lr|grad_norm)(\.|$)|^(loss|samples|frames|step_ms|input_wait_ms)$/.test(n));
  pair("loss", true);
  for (const name of [...rest, ...[...evaluation.keys()].filter((n) => n !== "loss" && !train.has(n))]) {
    if (!used.has(name)) pair(name, true);
  }
  family("learning rate", (n) => /^lr(\.|$)/.test(n));
  family("gradient norm", (n) => /^grad_norm(\.|$)/.test(n));
  family("time of a step", (n) => n === "step_ms" || n === "input_wait_ms", "ms");
  return list;
}

// value writes a value of a chart with its unit. A share is shown as percents.
const value = (group, v) => {
  if (group.unit === "%" && Number.isFinite(v)) return percent(v);
  return figure(v) + (group.unit && Number.isFinite(v) ? " " + group.unit : "");
};

// columns puts the curves of a chart on one axis of steps. The band of a curve is two columns more.
function columns(lines) {
  const tables = lines.map(({ s, band }) => (band ? [s.step, s.mean, s.low, s.high] : [s.step, s.mean]));
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function options(group, width, height) {
  const axis = colour("--muted"), grid = colour("--line");
  const series = [{ label: "step" }], bands = [];
  group.lines.forEach((line, i) => {
    const stroke = colour("--c" + (line.points ? 2 : (i % 7) + 1));
    series.push({
      label: line.label, stroke, width: 1.6, spanGaps: true,
      points: { show: !!line.points, size: 6, fill: stroke },
    });
    if (line.band) {
      const at = series.length;
      series.push({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false } });
      series.push({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false } });
      bands.push({ series: [at + 1, at], fill: colour("--band") });
    }
  });
  const font = "12px system-ui, sans-serif";
  const ticks = { stroke: grid, width: 1, size: 4 };
  return {
    width, height, series, bands, padding: [10, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "steps" }, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
    scales: { x: { time: false }, y: { distr: shown.log && group.log && positive(group) ? 3 : 1 } },
    axes: [
      { stroke: axis, grid: { stroke: grid, width: 1 }, ticks, font, size: 28, gap: 3, values: (_, v) => v.map((n) => (Number.isInteger(n) ? count(n) : "")), space: 70 },
      { stroke: axis, grid: { stroke: grid, width: 1 }, ticks, font, size: 58, gap: 4, values: (_, v) => v.map((n) => (n === null ? "" : group.unit === "%" ? figure(100 * n) + " %" : figure(n))) },
    ],
    hooks: {
      setCursor: [(u) => readout(group, u)],
      setSelect: [(u) => {
        if (u.select.width < 4) return;
        const from = Math.round(u.posToVal(u.select.left, "x"));
        const to = Math.round(u.posToVal(u.select.left + u.select.width, "x"));
        u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        zoom(from, Math.max(from + 1, to));
      }],
    },
  };
}

const positive = (group) => group.lines.every(({ s }) => s.low.every((v) => v === null || v > 0));

// readout writes the values at the cursor, or the last ones, over the chart.
function readout(group, u) {
  const chart = charts.get(group.key);
  if (!chart) return;
  const at = u && u.cursor.idx !== null && u.cursor.idx !== undefined ? u.cursor.idx : null;
  let column = 1;
  const keys = group.lines.map((line, i) => {
    const values = chart.data[column];
    column += line.band ? 3 : 1;
    let j = at === null ? values.length - 1 : at;
    while (j > 0 && (values[j] === null || values[j] === undefined)) j--;
    const text = h("bdi", {}, line.label);
    return h("span", { class: "k" + (line.points ? 2 : (i % 7) + 1) }, text, " " + value(group, values[j]));
  });
  const step = at === null ? null : chart.data[0][at];
  fill(chart.keys, keys, step === null ? null : h("span", { class: "plain" }, "step " + count(step)));
}

// describe says a chart in words.
function describe(group) {
  return group.title + ": " + group.lines.map(({ label, s }) => {
    if (!s.step.length) return label + " has no values";
    const last = s.mean.length - 1;
    const lows = s.low.filter((v) => v !== null);
    return `${label} from ${value(group, s.mean[0])} at step ${count(s.step[0])} to ${value(group, s.mean[last])} at step ` +
      `${count(s.step[last])}, lowest ${value(group, Math.min(...lows))}`;
  }).join("; ");
}

// rows are at most 40 rows of the table behind a chart.
function rows(group) {
  const { lines } = group;
  const steps = [...new Set(lines.flatMap(({ s }) => s.step))].sort((a, b) => a - b);
  const each = Math.max(1, Math.ceil(steps.length / 40));
  return steps.filter((_, i) => (steps.length - 1 - i) % each === 0).map((step) => [
    count(step), ...lines.map(({ s }) => {
      const i = s.step.indexOf(step);
      return i < 0 ? "" : value(group, s.mean[i]);
    }),
  ]);
}

// keyboard moves the cursor of a chart.
function keyboard(group, e) {
  const chart = charts.get(group.key), u = chart.plot, x = chart.data[0];
  const now = u.cursor.idx ?? x.length;
  const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: x.length - 1, PageUp: now - 20, PageDown: now + 20 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  const at = Math.max(0, Math.min(x.length - 1, to));
  const low = u.scales.y.min, high = u.scales.y.max;
  u.setCursor({ left: u.valToPos(x[at], "x"), top: u.valToPos((low + high) / 2, "y") });
  chart.said.textContent = `step ${count(x[at])}: ` + group.lines.map((line, i) => {
    const column = 1 + group.lines.slice(0, i).reduce((n, l) => n + (l.band ? 3 : 1), 0);
    return `${line.label} ${value(group, chart.data[column][at])}`;
  }).join(", ");
}

function make(group, into) {
  const keys = h("div", { class: "keys" });
  const said = h("p", { class: "skip", role: "status" });
  const plot = h("div", { class: "plot", tabIndex: 0, role: "img" });
  const body = h("div");
  const more = h("details", { on: { toggle: () => tabulate(charts.get(group.key)) } }, h("summary", {}, "as a table"), body);
  const figureOf = h("figure", {}, h("h3", {}, h("bdi", {}, group.title)), keys, plot, said, more);
  plot.addEventListener("keydown", (e) => keyboard(charts.get(group.key).group, e));
  plot.addEventListener("dblclick", () => zoom(null, null));
  into.append(figureOf);
  return { keys, said, box: plot, body, more, figure: figureOf };
}

function tabulate(chart) {
  if (!chart.more.open) return;
  const { lines, title } = chart.group;
  fill(chart.body, scroll("Values of " + title, table(null,
    [["step", "n"], ...lines.map(({ label }) => [label, "n"])], rows(chart.group))));
}

// draw makes or renews the charts of groups in an element.
function draw(list, into) {
  for (const group of list) {
    let chart = charts.get(group.key);
    if (!chart) {
      chart = make(group, into);
      charts.set(group.key, chart);
    }
    const shape = JSON.stringify([group.lines.map((l) => [l.label, l.band]), shown.log]);
    chart.group = group;
    chart.data = columns(group.lines);
    chart.box.setAttribute("aria-label", describe(group));
    if (!chart.plot || chart.shape !== shape) {
      chart.plot?.destroy();
      chart.shape = shape;
      chart.plot = new uPlot(options(group, chart.box.clientWidth || 400, chart.box.clientHeight || 220), chart.data, chart.box);
    } else {
      chart.plot.setData(chart.data);
    }
    readout(group, chart.plot);
    tabulate(chart);
  }
}

// load asks for the curves and draws them.
export async function load() {
  const q = new URLSearchParams({ pieces: String(Math.min(800, Math.max(200, Math.round(innerWidth / 2)))) });
  if (shown.from !== null) { q.set("from", shown.from); q.set("to", shown.to); }
  else if (shown.last && shown.step > shown.last) q.set("from", shown.step - shown.last + 1);
  const data = await get(base + "curves?" + q);
  const into = $("charts");
  const list = groups(data);
  if (list.length && !charts.size) fill(into);
  if (!list.length && !charts.size) fill(into, h("p", { class: "muted" }, none("No step is complete yet.", "The run folder has no figures of steps.")));
  draw(list, into);
  draw(data.speech.map((s) => ({ key: "speech " + s.name, title: s.title, unit: s.unit, lines: [{ label: "mean of the texts", s, points: true }] })), $("measures"));
  if (list.length && !performance.getEntriesByName("curves").length) performance.mark("curves");
  document.documentElement.dataset.curves = String(list.length);
}

let reload = load;

function zoom(from, to) {
  shown.from = from;
  shown.to = to;
  $("unzoom").hidden = from === null;
  reload();
}

// step tells which step is the last one.
export function step(n) { shown.step = n; }

// begin connects the tools over the charts with them.
export function begin(again) {
  reload = again;
  $("range").addEventListener("change", (e) => { shown.last = Number(e.target.value); zoom(null, null); });
  $("logscale").addEventListener("change", (e) => { shown.log = e.target.checked; reload(); });
  $("unzoom").addEventListener("click", () => { $("range").value = "0"; shown.last = 0; zoom(null, null); });
  const anew = () => {
    for (const c of charts.values()) { c.plot?.destroy(); c.plot = null; }
    draw([...charts.values()].map((c) => c.group));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
  let wait;
  addEventListener("resize", () => {
    clearTimeout(wait);
    wait = setTimeout(() => {
      for (const c of charts.values()) c.plot?.setSize({ width: c.box.clientWidth, height: c.box.clientHeight });
    }, 150);
  });
}
