// What evaluations have spoken: the same text at several steps beside each other, and the box that speaks.

import { base, get, media, post, spectrogram } from "./api.js";
import { $, count, fill, h, seconds, some, titled } from "./dom.js";
import { none } from "./words.js";

let all = { texts: [], steps: [], best: 0 };
let most = 8; // texts that are shown
const chosen = [null, null, null]; // steps, null for the first one, the best or a middle one, the last one

// stepOf is the step of a column, undefined without one.
function stepOf(i) {
  const { steps, best } = all;
  if (chosen[i] !== null && steps.includes(chosen[i])) return chosen[i];
  const last = steps.length - 1;
  const middle = best !== steps[0] && best !== steps[last] && steps.includes(best) ? best : steps[last >> 1];
  return [steps[0], middle, steps[last]][i];
}

function audio(src, label) {
  const player = h("audio", { controls: true, preload: "none", src, ariaLabel: label });
  player.addEventListener("error", () => player.replaceWith(h("p", { class: "muted", role: "status" },
    "The sound cannot be played: the file is gone or damaged.")));
  return player;
}

// gone stands for a sound that is not in the run folder any more.
const gone = (file) => h("p", { class: "muted" }, "The sound is gone: the run folder does not have ", h("code", {}, file), " any more.");

function picture(src, alt) {
  const img = h("img", { src, alt, loading: "lazy", decoding: "async" });
  img.addEventListener("error", () => img.remove());
  return img;
}

function take(text, t, title) {
  const name = `${text.name}, ${title}`;
  if (!t) return h("div", { class: "take" }, h("h4", {}, title), h("p", { class: "muted" }, "not spoken"));
  return h("div", { class: "take" }, h("h4", {}, title),
    t.gone ? gone(t.file) : t.file ? audio(media(t.file), name) : h("p", { class: "muted" }, "no sound"),
    t.picture ? picture(media(t.picture), `Spectrograms of ${name}: the recording above, the speech below`)
      : t.file && !t.gone ? picture(spectrogram(t.file), `Spectrogram of ${name}`) : null,
    h("dl", { class: "values" },
      h("dt", {}, t.cut ? "length, cut at the limit" : "length"), h("dd", {}, seconds(t.seconds)),
      (t.measures || []).map(([m, v]) => [h("dt", {}, h("bdi", {}, m)), h("dd", {}, v)])));
}

// draw shows the texts at the steps that are chosen.
async function draw() {
  const steps = [...new Set([0, 1, 2].map(stepOf).filter((s) => s !== undefined))];
  const lists = await Promise.all(steps.map((s) => get(base + "takes?step=" + s)));
  const cards = all.texts.slice(0, most).map((text, n) => h("article", { class: "card" },
    titled("h3", text.text || text.name, { class: "said", dir: "auto", lang: text.language || null }),
    h("p", { class: "sub muted" }, text.name, text.id && [", ", h("bdi", {}, text.id)], text.language && ", " + text.language),
    h("div", { class: "takes" },
      text.reference && h("div", { class: "take" }, h("h4", {}, "recording"),
        text.gone ? gone(text.reference) : [audio(media(text.reference), text.name + ", recording"),
          picture(spectrogram(text.reference), `Spectrogram of ${text.name}, recording`)]),
      steps.map((s, i) => take(text, lists[i].find((t) => t.text === n), "step " + count(s) + note(s))))));
  if (all.texts.length > most) {
    cards.push(h("p", {}, h("button", { type: "button", on: { click: () => { most += 20; draw(); } } },
      `Show more of ${some(all.texts.length, "text")}`)));
  }
  fill($("samples"), cards);
}

function note(step) {
  const which = [];
  if (step === all.steps[0]) which.push("the first");
  if (step === all.best) which.push("the best evaluation");
  if (step === all.steps[all.steps.length - 1]) which.push("the last");
  return which.length ? ", " + which.join(", ") : "";
}

function tools() {
  const columns = all.steps.length > 2 ? [0, 1, 2] : [0, 2];
  return h("div", { class: "tools", role: "group", ariaLabel: "Steps that are compared" }, columns.map((i) => {
    const options = all.steps.map((s) => h("option", { value: s, selected: stepOf(i) === s }, count(s)));
    const select = h("select", { on: { change: (e) => { chosen[i] = Number(e.target.value); draw(); } } }, options);
    return h("label", {}, (i ? "and step" : "Step") + " ", select);
  }));
}

// load asks for the texts and shows them.
export async function load() {
  const before = JSON.stringify([all.texts.length, all.steps.length, all.best]);
  all = await get(base + "texts");
  if (!all.steps.length) {
    fill($("speech-body"), h("p", { class: "muted" }, none("Nothing was spoken yet.", "The run has spoken nothing.")));
    return;
  }
  if (JSON.stringify([all.texts.length, all.steps.length, all.best]) === before) return;
  fill($("speech-body"), h("p", { class: "muted" },
    `${some(all.texts.length, "text")}, spoken at ${some(all.steps.length, "evaluation")}.` +
    (all.left ? ` ${some(all.left, "more sound")} in the run folder.` : "")), all.steps.length > 1 && tools());
  voices();
  await draw();
}

const own = "own"; // the voice of a file that the reader chooses
const mostVoice = 10; // MiB of it
let voiced = false;
let picked = ""; // the voice that the reader has chosen

// voices fills in what the box that speaks can choose from. A model with one voice takes no recording.
function voices() {
  const options = !voiced ? [] : [...all.texts.filter((t) => t.reference && !t.gone).map((t) =>
    [t.reference, [t.name, t.id].filter(Boolean).join(", ")]), [own, "a recording of your own"]];
  fill($("speak-voice"), options.map(([value, title]) => h("option", { value, selected: value === picked }, title)));
  $("speak-voice-box").hidden = !voiced;
  chooses();
  fill($("languages"), [...new Set(all.texts.map((t) => t.language).filter(Boolean))].map((l) => h("option", { value: l })));
  if (!$("speak-language").value && all.texts[0]?.language) $("speak-language").value = all.texts[0].language;
}

// chooses shows the field for a file of the reader if its voice is chosen.
function chooses() {
  $("speak-file-box").hidden = $("speak-voice").value !== own;
}

// offer shows the box that speaks, or says what the run lacks for it.
export function offer({ speaks, mute, voice, checkpoints }) {
  const steps = checkpoints || [];
  voiced = voice;
  $("speak").hidden = !speaks || !steps.length;
  fill($("speak-lacks"), mute ? `No sentence can be spoken here: ${mute}.` : speaks && !steps.length
    ? none("A sentence can be spoken here when the run has saved a checkpoint.", "No sentence can be spoken here: the run has no checkpoint.") : null);
  $("speak-lacks").hidden = !$("speak-lacks").textContent;
  const now = $("speak-checkpoint").value;
  fill($("speak-checkpoint"), [["last", "the newest"], ["best", "the best"], ...steps.map((s) => [String(s), "step " + count(s)])]
    .map(([value, title]) => h("option", { value, selected: value === now }, title)));
  voices();
}

// recording reads the file of the reader as base64.
function recording() {
  const file = $("speak-file").files[0];
  if (!file) throw new Error("Choose the file of your recording first.");
  if (file.size > mostVoice << 20) throw new Error(`The recording has more than ${mostVoice} MiB: choose a shorter one.`);
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => fail(new Error("The recording cannot be read.")));
    reader.readAsDataURL(file);
  });
}

// begin connects the box that speaks.
export function begin() {
  let stop;
  $("speak-voice").addEventListener("change", () => { picked = $("speak-voice").value; chooses(); });
  $("speak-stop").addEventListener("click", () => stop?.abort());
  $("speak").addEventListener("submit", async (e) => {
    e.preventDefault();
    const order = {
      text: $("speak-text").value, language: $("speak-language").value.trim(),
      checkpoint: $("speak-checkpoint").value,
    };
    const voice = $("speak-voice").value;
    const title = $("speak-checkpoint").selectedOptions[0].textContent;
    stop = new AbortController();
    busy(true);
    $("speak-status").textContent = "Speaking: the model is loaded first …";
    try {
      if (voice === own) order.recording = await recording();
      else order.voice = voice;
      const said = await post(base + "speak", order, stop.signal);
      $("speak-status").textContent = `${seconds(said.seconds)} of speech, made in ${seconds(said.took_s)}.`;
      const at = base + "speech/" + said.id;
      const player = audio(at + ".wav", "What was spoken: " + order.text.slice(0, 200));
      $("spoken").prepend(h("div", { class: "take" }, titled("h4", order.text, { dir: "auto" }),
        h("p", { class: "muted" }, title), player, picture(at + ".png", "Spectrogram of what was spoken")));
      while ($("spoken").children.length > 8) $("spoken").lastChild.remove();
      player.focus();
    } catch (err) {
      $("speak-status").textContent = err.name === "AbortError" ? "Stopped." : err.message;
    }
    busy(false);
  });
}

function busy(yes) {
  $("speak-go").disabled = yes;
  $("speak-stop").hidden = !yes;
}
