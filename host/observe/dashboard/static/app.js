// The page: what it shows of a run, and when it asks for it again.

import { base, get, listen, loader, run } from "./api.js";
import * as charts from "./charts.js";
import { $, clock, count, figure, fill, h, long, ms, percent, seconds, some } from "./dom.js";
import * as inside from "./inside.js";
import * as lists from "./lists.js";
import * as speech from "./speech.js";
import { known, none } from "./words.js";

let facts = null;
let state = null;
let waiting = false;
let away = null; // since when the server does not answer, and whether it refuses to
let heard = Date.now();

const load = {
  curves: loader(2000, charts.load),
  speech: loader(2000, speech.load),
  clips: loader(2000, lists.clips),
  log: loader(1000, lists.log),
  ranks: loader(10000, inside.ranks),
  about: loader(2000, about),
};

async function about() {
  facts = await get(base + "about");
  $("name").textContent = facts.name;
  document.title = facts.name + " – xtts-host";
  fill($("about"), [facts.bundle, facts.device, facts.folder].filter(Boolean).flatMap((t, i) => [i ? ", " : "", h("bdi", {}, t)]));
  fill($("notes"), facts.advice?.length ? h("div", { class: "note info" }, h("ul", {}, facts.advice.map((a) => h("li", { dir: "auto" }, long(a))))) : null);
  lists.settings(facts.settings);
  speech.offer(facts);
  inside.facts(facts, state?.live);
}

// badge shows the state of the run. That of one that runs is not known when the server does not answer.
function badge(s) {
  const lost = away && s.running;
  $("status").textContent = lost ? "no answer" : s.status;
  $("status").className = "badge " + (lost ? "warn" : s.tone);
  $("status").title = lost ? "" : s.means;
  const words = s.work || (s.status === "failed" || s.status === "diverged" ? s.outcome : s.status === "unfinished" ? s.means : "");
  $("work").textContent = lost ? `${s.status} at ${clock(away.since)}` : words;
}

function header(s) {
  badge(s);
  $("progress").hidden = !s.step && !s.total;
  const share = s.total ? Math.min(1, s.step / s.total) : 0;
  $("track").hidden = !s.total;
  $("fill").style.width = 100 * share + "%";
  $("track").setAttribute("aria-valuemax", String(s.total));
  $("track").setAttribute("aria-valuenow", String(s.step));
  const parts = [`step ${count(s.step)}` + (s.total ? ` of ${count(s.total)}` : "")];
  if (s.left_s > 0) parts.push(seconds(s.left_s) + " left");
  if (!s.live && s.mark.LastWrite) parts.push("written " + clock(s.mark.LastWrite));
  $("steps").textContent = parts.join(" · ");
}

function tiles(s) {
  const list = [["training loss", figure(s.loss), s.best === null ? "" : `lowest ${figure(s.best)} at step ${count(s.best_step)}`]];
  list.push(["best evaluation", s.evaluations ? figure(s.best_evaluation) : "–",
    s.evaluations ? `step ${count(s.best_evaluation_step)}, of ${some(s.evaluations, "evaluation")}` : none("none yet", "none")]);
  if (s.step_ms > 0) {
    list.push(["step time", ms(s.step_ms), (1000 / s.step_ms).toFixed(2) + " steps/s"]);
    list.push(["input stall", percent(s.wait_ms / s.step_ms), "waiting for batches"]);
  }
  list.push(["skipped steps", count(s.skipped), "without an update"]);
  list.push(["clips left out", count(s.unusable), s.unusable ? "listed below" : "all are used"]);
  list.push(["warnings", count(s.warnings), s.warnings ? "in the log" : "none"]);
  fill($("tiles"), list.map(([name, value, note]) =>
    h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, note && h("small", {}, note)))));
  lost();
}

function take(s) {
  const before = state;
  const ended = known(s) && before;
  state = s;
  header(s);
  tiles(s);
  charts.step(s.step);
  const old = before?.mark || {}, now = s.mark;
  const again = !before || ended || old.Again !== now.Again;
  const changed = (...keys) => again || keys.some((k) => old[k] !== now[k]);
  if (changed("Steps", "Evaluations", "Spoken")) load.curves();
  if (changed("Spoken", "Evaluations")) load.speech();
  if (changed("Clips")) load.clips();
  if (changed("Log")) load.log();
  if (changed("Report", "Settings", "Evaluations") || before?.live !== s.live) { load.about(); load.ranks(); }
}

// there notes whether the server answers.
function there(yes, refused) {
  if (yes) heard = Date.now();
  if (yes ? !away : away && away.refused === !!refused) return;
  away = yes ? null : { since: heard, refused: !!refused };
  if (state) badge(state);
  lost();
}

// gone says that the server does not answer, and what to do.
function gone() {
  if (away.refused) return "The server sends no news of this run: too many pages watch it, or another program serves at this address now. This page tries again.";
  const view = facts ? ": xtts-host view " + facts.folder : ".";
  return `The server of this page has not answered since ${clock(away.since)}. What is shown is of that time. This page tries again. ` +
    (run < 0 ? "If it was ended, start it again with xtts-host view." : facts && !facts.own ? "If it was ended, start it again" + view
      : "It ends with its run. If the run has ended, xtts-host view shows it from its files" + view);
}

// lost says that the server does not answer, or which files of the run it cannot read. An alert that has not changed is
// not set again, so that it is not read aloud again.
function lost() {
  const problems = state?.problems || [];
  const text = away ? gone() : problems.length ? "Not all of this run can be read. The rest is shown. " + problems.join("; ") : "";
  if ($("lost").dataset.text !== text) fill($("lost"), long(text, 1000));
  $("lost").dataset.text = text;
  $("lost").hidden = !text;
}

// here marks the part of the page that is seen.
function here() {
  const links = [...document.querySelectorAll("nav a")];
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const e of entries) e.isIntersecting ? seen.add(e.target.id) : seen.delete(e.target.id);
    const first = links.find((a) => seen.has(a.hash.slice(1)));
    for (const a of links) a === first ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
  }, { rootMargin: "-130px 0px -40% 0px" });
  for (const a of links) watch.observe($(a.hash.slice(1)));
}

async function begin() {
  if (run < 0) {
    $("kind").textContent = "Runs";
    $("name").textContent = "";
    $("status").hidden = true;
    $("runs").hidden = false;
    const again = loader(2000, async () => {
      const list = await lists.runs().then((l) => { there(true); return l; }, (e) => { there(false); throw e; });
      if (!list.length) waiting = true;
      else if (waiting) location.replace("/runs/0"); // the run of this process has got its folder
    });
    again();
    setInterval(again, 5000);
    return;
  }
  $("one").hidden = false;
  $("nav").hidden = false;
  charts.begin(load.curves);
  speech.begin();
  $("level").addEventListener("change", lists.drawLog);
  here();
  listen({ state: take, slots: inside.draw }, there);
  const all = await get("/api/runs").catch(() => []);
  $("home").hidden = all.length < 2;
}

begin();
