// Package event carries what happens in a training run to whoever wants to know.
//
// The run publishes events, plain values, on a [Bus]: [Start], [Phase], [Step], [Evaluation], [Checkpoint], [Memory], [Warning],
// [Message] and [Finish]. The Bus hands them to its sinks in the order in which they were published. Sinks are of two policies:
//
//   - Required sinks ([Bus.Require]) must not lose an event: metrics.jsonl, eval.jsonl, ledger.jsonl, the log and the report's
//     figures. The error of one ends the run.
//   - Best-effort sinks ([Bus.Offer]) are for people and dashboards: the console. Each has a bounded queue and a goroutine of its own.
//     What its queue has no room for is dropped, counted and reported. Training never waits for one and never fails with it.
//
// Whoever wants to know where the run stands, and not all that happened, asks for a [Bus.Snapshot].
//
// # How to add a sink
//
// Write one type with the methods of [Sink], in a file of its own, and add it where the run's other sinks are added (newObserver in
// package host). Take gets many events at a time; those that the sink does not know, it leaves alone:
//
//	// losses writes one line per step, for a spreadsheet.
//	type losses struct{ file *os.File }
//
//	func (l *losses) Take(events []event.Event) error {
//		var text []byte
//		for _, e := range events {
//			if s, ok := e.(*event.Step); ok {
//				text = fmt.Appendf(text, "%d,%g\n", s.Step, s.Loss)
//			}
//		}
//		_, err := l.file.Write(text)
//		return err
//	}
//
//	func (l *losses) Close() error { return l.file.Close() }
//
//	bus.Offer("losses.csv", &losses{file}, warn)
//
// # The trainer's thread
//
// A step is published by the thread that trains, between two steps: it pays for one copy of the step. The Bus delivers steps a
// quarter of a second late at most and many at a time, on a goroutine of its own. All other events are rare; they are delivered at once,
// and after the steps before them.
package event
