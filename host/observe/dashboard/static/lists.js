// Lists: the runs, clips that are left out, the log, settings.

import { base, get } from "./api.js";
import { $, clock, count, figure, fill, h, long, scroll, some, table } from "./dom.js";
import { none } from "./words.js";

// runs shows the list of all runs.
export async function runs() {
  const list = await get("/api/runs");
  if (!list.length) {
    fill($("runs-body"), h("p", { class: "muted" }, "The run is being prepared. Its page opens when it has a folder."));
    return list;
  }
  fill($("runs-body"), scroll("Runs and their states", table(null,
    [["run"], ["state"], ["step", "n"], ["loss", "n"], ["best evaluation", "n"], ["written"]],
    list.map((r, i) => [
      h("span", {}, h("a", { href: "/runs/" + i }, h("bdi", {}, r.name)), h("bdi", { class: "path" }, r.folder),
        r.problems?.length ? h("span", { class: "path problem" }, long("Not all can be read: " + r.problems.join("; "), 160)) : null),
      h("span", { class: "badge " + r.tone, title: r.means }, r.status), count(r.step), figure(r.loss),
      figure(r.best_evaluation), r.written ? clock(r.written) : "–",
    ])), true));
  return list;
}

let from = 0;

// clips shows those that cannot be used, with their sound as far as it can be decoded.
export async function clips() {
  const answer = await get(base + "clips?from=" + from);
  if (!answer.count) {
    fill($("clips-body"), h("p", { class: "muted" }, none("None so far.", "No clip was left out.")));
    return;
  }
  const play = (n, id) => h("button", {
    type: "button", ariaLabel: "Play " + id, on: { click: (e) => listen(e.target, n, id) },
  }, "Play");
  const rows = answer.clips.map(([id, reason, stage, split, path], i) => [
    id, reason, stage, split, path ? h("span", {}, play(answer.from + i, id)) : "",
  ]);
  const end = answer.from + answer.clips.length;
  const turn = (title, to, off) => h("button", { type: "button", disabled: off, on: { click: () => { from = to; clips(); } } }, title);
  fill($("clips-body"),
    h("p", {}, `${some(answer.count, "clip")} cannot be used. ` + none("Training goes on without them.", "Training went on without them.")),
    scroll("List of clips", table(null, [["clip"], ["reason", "t"], ["found by"], ["list"], ["sound"]], rows), true),
    answer.count > answer.clips.length && h("p", { class: "tools" },
      turn("Before", Math.max(0, from - 50), from === 0), h("span", {}, `${count(answer.from + 1)} to ${count(end)}`),
      turn("Next", from + 50, end >= answer.count)));
}

// listen replaces a button by a player, or by the reason why there is none.
async function listen(button, n, id) {
  const at = base + "clip?n=" + n;
  const without = (e, why) => e.replaceWith(h("span", { class: "muted", role: "status" }, "no sound: " + why));
  const { problem } = await get(at + "&check").catch((e) => ({ problem: e.message }));
  if (problem) return without(button, problem);
  const player = h("audio", { controls: true, src: at, ariaLabel: "Clip " + id });
  player.addEventListener("error", () => without(player, "the recording cannot be decoded"));
  button.replaceWith(player);
  player.focus();
  player.play().catch(() => {});
}

let lines = null;

// log shows the last lines of the log.
export async function log() {
  lines = await get(base + "log");
  drawLog();
}

export function drawLog() {
  if (!lines) return;
  const shown = lines.filter(([, level]) => !$("level").value || level === "WARN" || level === "ERROR").reverse();
  fill($("log-body"), shown.length
    ? scroll("Log, the newest line first", table(null, [["time"], ["level"], ["line", "t"]], shown.map(([t, level, text]) =>
      [t ? h("time", { dateTime: t }, clock(t)) : "–", h("span", { class: "level " + (level === "WARN" || level === "ERROR" ? level : "") }, level.toLowerCase()), text])), true)
    : h("p", { class: "muted" }, lines.length ? "The last 200 lines have no such line." : none("No line so far.", "The run folder has no line of a log.")));
}

// settings shows where each setting comes from, those that somebody has chosen first.
export function settings(list) {
  const columns = [["setting"], ["value", "t"], ["from"]];
  const rows = (list) => list.map(([name, value, origin]) => [h("code", {}, name), h("code", {}, long(value, 160)), origin]);
  const own = (list || []).filter(([, , origin]) => origin !== "default");
  fill($("settings-body"), own.length ? scroll("Settings that were chosen", table("Chosen", columns, rows(own))) : null,
    list?.length ? h("details", {}, h("summary", {}, `All ${some(list.length, "setting")}`), scroll("All settings", table(null, columns, rows(list)), true))
      : h("p", { class: "muted" }, "The run folder has no settings."));
}
