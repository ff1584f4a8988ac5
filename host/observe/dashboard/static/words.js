// What the page says where a run has nothing to show: of one that runs, that it may come; of another one, that it is not
// there.

let running = true;

// known tells the state of the run, and reports whether the words change with it.
export function known(state) {
  const changes = running !== state.running;
  running = state.running;
  return changes;
}

export const none = (yet, never) => (running ? yet : never);
