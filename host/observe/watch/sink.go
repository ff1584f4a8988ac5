package watch

import "github.com/xtts-host/xtts-host/host/observe/event"

// Sink returns the sink that counts the run's steps. due reports whether a step brings a progress line. The sink must
// be a required one: the Watch needs all steps to detect growing memory.
func (w *Watch) Sink(due func(step int64) bool) event.Sink { return sink{w, due} }

type sink struct {
	watch *Watch
	due   func(step int64) bool
}

// Take implements event.Sink.
func (s sink) Take(events []event.Event) error {
	for _, e := range events {
		if step, ok := e.(*event.Step); ok {
			s.watch.Window(step.Step, s.due(step.Step))
		}
	}
	return nil
}

// Close implements event.Sink.
func (sink) Close() error { return nil }
