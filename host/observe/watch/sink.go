package watch

import "github.com/xtts-host/xtts-host/host/observe/event"

// Sink returns the sink that counts the run's steps. It must be a required one: the Watch needs all steps to detect
// growing memory.
func (w *Watch) Sink() event.Sink { return &sink{watch: w} }

type sink struct {
	watch *Watch
	run   event.Start
}

// Take implements event.Sink.
func (s *sink) Take(events []event.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *event.Start:
			s.run = *e
		case *event.Step:
			s.watch.Window(e.Step, s.run.Due(e.Step))
		}
	}
	return nil
}

// Close implements event.Sink.
func (*sink) Close() error { return nil }
