// Package debug exposes a run's internal state to tests, and stops the run at chosen points. It is off unless
// --debug-dir names a folder:
//
//	d, err := debug.Open(cfg.DebugDir) // nil for "": every method of a nil *Folder does nothing
//	defer d.Close()
//	...
//	d.Reach(debug.Point{Phase: "configure", Plugin: "features", PID: pid})
//
// The folder has ledger.jsonl, the rows that each optimizer step was trained on (written by host/observe/report), and
// memory.jsonl, the memory use of the process every few seconds. If a test harness listens on a unix socket
// phases.sock, it receives a line for every point that the run reaches, and the goroutine at that point waits for the
// answer. So the harness stops or kills a process exactly in that phase. If the folder has a folder batches, every
// training batch is written to it. docs/torture.md describes the files and the socket.
package debug
