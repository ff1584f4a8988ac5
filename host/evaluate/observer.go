package evaluate

import (
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/pipeline"
)

// observer keeps the evaluation. There are no training batches and no steps.
type observer evaluation

// Batch implements train.Observer.
func (*observer) Batch(*pipeline.DeviceSlot) {}

// Step implements train.Observer.
func (*observer) Step(*event.Step) error { return nil }

// Evaluated implements train.Observer.
func (o *observer) Evaluated(e *event.Evaluation) error {
	o.found = *e
	return nil
}
