// The inside of a run: where each batch is, how long the phases take, memory, plugins and ranks.

import { base, get } from "./api.js";
import { $, bytes, clock, count, fill, h, ms, percent, scroll, some, table } from "./dom.js";
import { none } from "./words.js";

const [FREE, PREPARING, READY] = [0, 1, 2];
const colours = { wait: 4, train: 1, optimizer: 3, other: 7, gpu_train: 1, gpu_optimizer: 3, gpu_transfer: 6 };

let flow; // of the picture: lanes and batches by their slots

// lanes are the places of a batch in their order.
function lanesOf(s) {
  const list = [["free", "free slots"]];
  s.phases.slice(0, -1).forEach((p, i) => list.push(["phase" + i, p.name, p.ms]));
  list.push(["ready", "ready in the ring"], ["transfer", "transfer", s.phases.at(-1)?.ms], ["device", "ready on the device"],
    ["training", "training", s.step.find((p) => p.name === "train")?.ms]);
  return list;
}

function build(s) {
  const lanes = new Map();
  const body = h("div", { class: "flow", role: "img" });
  for (const [key, title] of lanesOf(s)) {
    const time = h("span", { class: "ms" }), room = h("span", { class: "room" });
    const row = h("div", { class: "lane" }, h("span", { class: "name" }, h("bdi", {}, title)), room, time);
    body.append(row);
    lanes.set(key, { row, room, time });
  }
  const bar = h("div", { class: "stack", role: "img" }), legend = h("ul", { class: "legend" });
  const words = h("p", { class: "muted" });
  fill($("inside-body"), h("div", { class: "card" }, h("h3", {}, "A step, in the mean of the last ones"), bar, legend),
    h("div", { class: "card below" }, h("h3", {}, "Batches in the ring and on the device"), words, body));
  flow = { shape: shapeOf(s), lanes, body, bar, legend, words, batches: new Map() };
}

const shapeOf = (s) => JSON.stringify([s.ring.length, s.device.length, s.phases.map((p) => p.name)]);

// place says where a batch is.
function place(kind, slot) {
  if (kind === "ring") {
    const [state, phase] = slot;
    if (state === FREE) return "free";
    return state === PREPARING ? "phase" + phase : "ready";
  }
  return ["", "transfer", "device", "training"][slot[0]];
}

// draw moves the batches to where they are.
export function draw(s) {
  if (!flow || flow.shape !== shapeOf(s)) build(s);
  const where = new Map([...flow.lanes.keys()].map((k) => [k, []]));
  s.ring.forEach((slot, i) => where.get(place("ring", slot))?.push(["ring" + i, slot[2], slot[0]]));
  s.device.forEach((slot, i) => where.get(place("device", slot))?.push(["device" + i, slot[1], slot[0]]));
  for (const list of where.values()) list.sort((a, b) => (a[1] || 1e15) - (b[1] || 1e15));
  const small = s.ring.length > 24 && flow.body.clientWidth < 700 || s.ring.length > 100;
  const [wide, tall] = small ? [18, 18] : [51, 27];
  const frame = flow.body.getBoundingClientRect();
  const seen = new Set();
  const tops = [];
  for (const [key, lane] of flow.lanes) { // first the heights, then the places
    const across = Math.max(1, Math.floor(lane.room.clientWidth / wide) || 1);
    tops.push([key, lane, across]);
    const lines = Math.max(1, Math.ceil(where.get(key).length / across));
    const height = Math.max(36, lines * tall + 8) + "px";
    if (lane.row.style.minHeight !== height) lane.row.style.minHeight = height;
  }
  for (const [key, lane, across] of tops) {
    const box = lane.room.getBoundingClientRect(), row = lane.row.getBoundingClientRect();
    where.get(key).forEach(([id, step], i) => {
      seen.add(id);
      let e = flow.batches.get(id);
      if (!e) {
        e = h("span", { class: "batch", ariaHidden: "true" });
        flow.body.append(e);
        flow.batches.set(id, e);
      }
      const kind = key === "free" ? "free" : key === "training" ? "training" : key === "transfer" ? "moving"
        : key === "ready" || key === "device" ? "ready" : "";
      e.className = `batch ${kind} ${small ? "small" : ""} ${!step && key !== "free" && key !== "transfer" ? "eval" : ""}`;
      e.textContent = step ? String(step) : key === "free" ? "" : key === "transfer" ? "…" : "eval";
      const x = box.left - frame.left + (i % across) * wide;
      const y = row.top - frame.top + Math.floor(i / across) * tall + (small ? 9 : 6);
      e.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    });
  }
  for (const [id, e] of flow.batches) if (!seen.has(id)) { e.remove(); flow.batches.delete(id); }
  for (const [key, , time] of lanesOf(s)) flow.lanes.get(key).time.textContent = time ? ms(time) : "";
  const text = [...where].filter(([, list]) => list.length).map(([key, list]) =>
    `${list.length} ${flow.lanes.get(key).row.firstChild.textContent}`).join(", ");
  flow.body.setAttribute("aria-label", "Slots: " + text);
  flow.words.textContent = (small ? "" : "A number is the step of a batch. ") + "While one is trained on, the next are prepared." +
    (s.rebuilt ? ` ${some(s.rebuilt, "batch", "batches")} ${s.rebuilt === 1 ? "was" : "were"} made again.` : "");
  stack(flow.bar, flow.legend, s.step);
  machine(s);
}

// stack draws parts of a whole.
function stack(bar, legend, parts) {
  const sum = parts.reduce((a, p) => a + p.ms, 0) || 1;
  const named = parts.map((p, i) => ({ ...p, k: colours[p.name] || (i % 7) + 1 }));
  if (bar.children.length !== named.length) fill(bar, named.map((p) => h("div", { class: "f" + p.k })));
  named.forEach((p, i) => { bar.children[i].style.width = (100 * p.ms) / sum + "%"; });
  fill(legend, named.map((p) => h("li", {}, h("span", { class: "k" + p.k }, h("bdi", {}, p.name)), ` ${ms(p.ms)}, ${percent(p.ms / sum)}`)));
  bar.setAttribute("aria-label", named.map((p) => `${p.name} ${ms(p.ms)}`).join(", "));
}

function meter(m) {
  const share = m.limit ? Math.min(1, m.used / m.limit) : 0;
  const inner = h("div", { class: "fill" + (share > 0.95 ? " full" : share > 0.85 ? " near" : "") });
  inner.style.width = 100 * share + "%";
  return h("div", { class: "meter" },
    h("div", { class: "label" }, h("bdi", {}, m.name), h("span", {}, bytes(m.used) + (m.limit ? ` of ${bytes(m.limit)}` : ", no limit"))),
    m.limit ? h("div", { class: "track", role: "meter", ariaLabel: m.name, ariaValueMin: "0", ariaValueMax: String(m.limit), ariaValueNow: String(m.used) }, inner) : null);
}

function plugins(list) {
  return scroll("Plugins", table("Plugins", [["plugin"], ["processes", "n"], ["restarts", "n"], ["batches", "n"], ["failed", "n"], ["lost", "n"], ["median", "n"], ["99 %", "n"], ["memory", "n"]],
    list.map((p) => [p.name, p.up < 0 ? count(p.workers) : `${p.up} of ${p.workers}`, count(p.restarts), count(p.calls), count(p.failed), count(p.lost), ms(p.p50), ms(p.p99), p.memory ? bytes(p.memory) : "–"])));
}

const shown = { memory: null, busy: null, plugins: null, ranks: null, logs: null, process: 0 };

// machine shows memory, plugins and ranks, of a run of this process as they are now.
function machine(s) {
  if (s.memory) shown.memory = s.memory;
  if (s.plugins) shown.plugins = s.plugins;
  shown.process = s.ranks || 0;
  redraw();
}

let last = "";
let reported = false; // by the report of the run
function redraw() {
  const now = JSON.stringify([shown, reported, none(1, 0)]);
  if (now === last) return;
  last = now;
  const parts = [];
  if (shown.memory?.length) parts.push(h("div", { class: "card" }, h("h3", {}, "Memory"), shown.memory.map(meter)));
  if (shown.busy?.length) parts.push(h("div", { class: "card" }, h("h3", {}, "Devices at work"), shown.busy.map((b) =>
    h("div", { class: "meter" }, h("div", { class: "label" }, h("bdi", {}, b.name), h("span", {}, percent(b.ms)))))));
  const below = [];
  if (shown.plugins?.length) below.push(plugins(shown.plugins));
  if (shown.ranks?.length) below.push(scroll("Ranks", table("Ranks: processes that train the model together",
    [["rank"], ["machine"], ["device"], ["own part of a step", "n"], ["step", "n"], ["input stall", "n"], ["memory", "n"]],
    shown.ranks.map((r) => [String(r.rank), r.host, r.device, ms(r.own_ms), ms(r.step_ms), percent(r.stall), r.memory ? bytes(r.memory) : "–"]))));
  else if (shown.process > 1) below.push(h("p", {}, `${some(shown.process, "rank")} train the model together. Their figures come with the report at the end.`));
  for (const r of shown.logs || []) {
    below.push(h("details", {}, h("summary", {}, `Log of rank ${r.rank}` + (r.written ? `, written ${clock(r.written)}` : "")),
      scroll("Log of rank " + r.rank, table(null, [["time"], ["level"], ["line", "t"]], (r.lines || []).map(([t, l, text]) => [clock(t), l, text])))));
  }
  if (!parts.length && !below.length) {
    fill($("machine-body"), h("p", { class: "muted" }, none("Not known yet.", reported ? "The report has no figures of memory and plugins."
      : "The report of a run has its memory, plugins and ranks. This run has no report.")));
    return;
  }
  fill($("machine-body"), h("div", { class: "columns" }, parts), below);
}

// facts shows what report.json says, of a run that has ended.
export function facts(f, live) {
  if (live) return;
  if (f.phases?.length) {
    const names = ["wait", "train", "optimizer", "other"];
    const bar = h("div", { class: "stack", role: "img" }), legend = h("ul", { class: "legend" });
    stack(bar, legend, f.phases.filter((p) => names.includes(p.name)));
    const beside = f.phases.filter((p) => !names.includes(p.name));
    flow = null;
    fill($("inside-body"), h("div", { class: "columns" },
      h("div", { class: "card" }, h("h3", {}, "A step, in the mean"), bar, legend),
      h("div", { class: "card" }, table("Of a batch, beside training", [["phase"], ["time", "n"]], beside.map((p) => [p.name, ms(p.ms)])))));
  } else if (!flow || none(false, true)) {
    flow = null;
    fill($("inside-body"), h("p", { class: "muted" }, none("Shown when the run trains.", "While a run trains, the page of --dashboard shows here where each batch is. After its end, the report " +
      (f.reported ? "has the times of the phases; the report of this run has none." : "has the times of the phases. This run has no report."))));
  }
  reported = f.reported;
  shown.memory = f.memory;
  shown.busy = f.busy;
  shown.plugins = f.plugins;
  shown.ranks = f.ranks;
  redraw();
}

// ranks asks for the logs of the other ranks.
export async function ranks() {
  shown.logs = await get(base + "ranks");
  redraw();
}
