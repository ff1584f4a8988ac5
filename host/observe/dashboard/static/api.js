// Requests to the server of this page, and to nothing else.

const match = location.pathname.match(/^\/runs\/(\d+)/);
export const run = match ? Number(match[1]) : -1;
export const base = `/api/runs/${run}/`;

// get asks for JSON.
export async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

// post sends an order. Its error is what the server says.
export async function post(path, body, signal) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

export const media = (file) => base + "media?file=" + encodeURIComponent(file);
export const spectrogram = (file) => base + "spectrogram?file=" + encodeURIComponent(file);

const silence = 45000; // the server sends something every 15 s

// listen calls back for each message of a kind, and with whether the server is there, or refuses to send messages.
export function listen(kinds, there) {
  let source, last = Date.now();
  const open = () => {
    source = new EventSource(base + "events");
    for (const [kind, call] of Object.entries({ here: () => {}, ...kinds })) {
      source.addEventListener(kind, (e) => { last = Date.now(); there(true); call(JSON.parse(e.data)); });
    }
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      there(false, refused);
      if (refused) setTimeout(open, 5000); // otherwise the browser tries again
    };
  };
  open();
  setInterval(() => { if (Date.now() - last > silence) there(false); }, 5000);
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) open(); });
}

// loader returns a function that asks for something to be loaded again: at most once in so many milliseconds, never
// twice at a time, and not while nobody sees the page.
export function loader(pause, load) {
  let busy = false, due = false, last = 0;
  const go = async () => {
    if (busy || document.hidden) { due = true; return; }
    const early = last + pause - performance.now();
    if (last && early > 0) {
      if (!due) { due = true; setTimeout(() => { due = false; go(); }, early); }
      return;
    }
    busy = true; due = false; last = performance.now();
    try { await load(); } catch (e) { console.debug("not loaded:", e.message); }
    busy = false;
    if (due) { due = false; go(); }
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden && due) { due = false; go(); } });
  return go;
}
