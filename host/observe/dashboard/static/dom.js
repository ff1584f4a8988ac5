// Elements and numbers. Every text reaches the page by textContent: what a run folder says can never be HTML.

export const $ = (id) => document.getElementById(id);

// h makes an element. Names of properties are those of the DOM; children are elements and texts.
export function h(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") e.className = value;
    else if (name === "on") for (const [event, call] of Object.entries(value)) e.addEventListener(event, call);
    else if (name in e && name !== "list") e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...there(children));
  return e;
}

const there = (children) => children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== "");

// fill replaces what is in an element.
export function fill(e, ...children) {
  e.replaceChildren(...there(children));
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (n) => whole.format(n);

// some counts things: "1 text", "2 texts".
export const some = (n, thing, things = thing + "s") => count(n) + " " + (n === 1 ? thing : things);

// figure writes a number with about four digits.
export function figure(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  const a = Math.abs(v);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(2).replace("e+", "e");
  return a >= 1000 ? whole.format(v) : String(Number(v.toPrecision(4)));
}

// cut is the beginning of a long text. It does not divide a character.
const cut = (text, most) => [...text.slice(0, 2 * most)].slice(0, most).join("").trimEnd() + " …";

// long is a text of which only the beginning is shown, until a reader asks for all of it.
export function long(text, most = 300) {
  if (typeof text !== "string" || text.length <= 1.2 * most) return text;
  return h("details", { class: "long" }, h("summary", { dir: "auto" }, h("span", { class: "start" }, cut(text, most), " ", h("span", { class: "turn" }, "show all")),
    h("span", { class: "turn less" }, "show less")), h("span", { dir: "auto" }, text));
}

// titled is a text as a heading, with a way to see all of it below.
export const titled = (tag, text, props = {}) => text.length <= 240 ? [h(tag, props, text)]
  : [h(tag, props, cut(text, 200)), h("details", {}, h("summary", {}, "All of the text"), h("p", { ...props, class: "" }, text))];

export function ms(v) {
  if (v >= 10000) return (v / 1000).toFixed(1) + " s";
  return (v >= 100 ? v.toFixed(0) : v >= 1 ? v.toFixed(1) : v.toFixed(2)) + " ms";
}

export function seconds(s) {
  if (s < 60) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.round((s % 3600) / 60) + " min";
  return (s / 86400).toFixed(1) + " days";
}

export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1000 || unit === "GiB") return (unit === "B" ? n : n.toFixed(n < 10 ? 1 : 0)) + " " + unit;
    n /= 1024;
  }
}

export const percent = (v) => (100 * v).toFixed(v < 0.0995 ? 1 : 0) + " %";

// clock writes a time of the log, or of a file, in the zone of the reader.
export function clock(t) {
  const d = new Date(t);
  return Number.isNaN(d.getTime()) ? String(t) : d.toLocaleString("en-GB", { hour12: false });
}

// table makes a table. Columns are [title, class]; the first cell of a row is its head.
export function table(caption, columns, rows) {
  return h("table", {},
    caption && h("caption", {}, caption),
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) =>
      h(i ? "td" : "th", { class: columns[i][1], scope: i ? null : "row", dir: "auto" }, long(cell)))))));
}

// scroll makes a box for what may be wider or longer than the page; the keyboard can scroll it.
export const scroll = (label, child, tall) =>
  h("div", { class: "scroll" + (tall ? " tall" : ""), tabIndex: 0, role: "region", ariaLabel: label }, child);
