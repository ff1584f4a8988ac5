// Package event delivers the events of a training run to sinks.
//
// The run publishes events, plain values, on a [Bus]: [Start], [Phase], [Work], [Step], [Pace], [Evaluation],
// [Lowered], [Spoken], [Checkpoint], [Memory], [Warning], [Message] and [Finish]. The Bus delivers them to its sinks in
// the order in which they were published. There are two kinds of sinks:
//
//   - Required sinks ([Bus.Require]) must not lose an event: metrics.jsonl, eval.jsonl, ledger.jsonl, the log and the
//     figures of the report. An error of a required sink ends the run.
//   - Best-effort sinks ([Bus.Offer]) are for the console and for dashboards. Each has a bounded queue and a goroutine
//     of its own. If the queue is full, events are dropped, counted and reported. Training never waits for such a sink,
//     and does not fail if the sink fails.
//
// [Bus.Snapshot] returns the current progress of the run, for readers that do not need all events.
//
// # How to add a sink
//
// Write one type with the methods of [Sink] and add it in addSinks of package run, with the other sinks of the run.
// Take receives many events at a time. A sink ignores the types that it does not use:
//
//	// meter shows the last loss, on a display for example.
//	type meter struct{ to io.Writer }
//
//	func (m *meter) Take(events []event.Event) error {
//		for _, e := range slices.Backward(events) {
//			if s, ok := e.(*event.Step); ok {
//				_, err := fmt.Fprintf(m.to, "step %d: %.3f\n", s.Step, s.Loss)
//				return err
//			}
//		}
//		return nil
//	}
//
//	func (m *meter) Close() error { return nil }
//
//	bus.Offer("meter", &meter{display}, warn)
//
// A file of the run folder that must not lose a line is a [Durable] of package report, such as its Ledger: it is cut
// back to the step of the checkpoint when a run is resumed, waits for a disk that is full, and makes its lines durable
// before a checkpoint is saved. [Bus.RequireFile] adds it.
//
// # The trainer's thread
//
// The trainer's thread publishes a step between two steps. This costs it one copy of the step. The Bus delivers steps
// on a goroutine of its own, many at a time and at most a quarter of a second late. All other events are rare: the Bus
// delivers them immediately, after the steps before them.
package event
