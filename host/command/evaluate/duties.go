package evaluate

import (
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
)

// duties keep the evaluation. There are no training batches and no steps.
type duties evaluation

// Batch implements loop.Duties.
func (*duties) Batch(*pipeline.DeviceSlot) {}

// Step implements loop.Duties.
func (*duties) Step(*event.Step) error { return nil }

// Evaluated implements loop.Duties.
func (o *duties) Evaluated(e *event.Evaluation, _ *train.Best) error {
	o.found = *e
	return nil
}

// works shows how far the evaluation is. It is an event.Sink.
type works struct{ waiting *report.Waiting }

func (w works) Take(events []event.Event) error {
	for _, e := range events {
		if e, ok := e.(*event.Work); ok && e.Task == event.Evaluating {
			w.waiting.Counted("evaluated", e.Unit, e.Done, e.Of)
		}
	}
	return nil
}

func (w works) Close() error {
	w.waiting.Close()
	return nil
}
