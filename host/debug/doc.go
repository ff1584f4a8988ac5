// Package debug lets a test look into a run, and stop it at a chosen point. It is off unless --debug-dir names a folder:
//
//	d, err := debug.Open(cfg.DebugDir) // nil for "": every method of a nil *Folder does nothing
//	defer d.Close()
//	...
//	d.Reach(debug.Point{Phase: "configure", Plugin: "features", PID: pid})
//
// In the folder stand ledger.jsonl, the rows that each optimizer step was trained on (written by host/report), and
// memory.jsonl, what the process held every few seconds. Where a harness listens on a unix socket phases.sock, it gets a line for
// every point that the run reaches, and the goroutine that got there goes on when it has answered: so a process is
// stopped or killed in a phase, not near it. If the folder has a folder batches, every training batch is written to it.
// docs/torture.md describes the files and the socket.
package debug
