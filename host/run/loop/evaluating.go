package loop

import (
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Observer gets the events of a run as a train.Observer does, except for the progress of evaluations, which the Loop
// publishes.
type Observer interface {
	Batch(d *pipeline.DeviceSlot)
	Step(s *event.Step) error
	Evaluated(e *event.Evaluation) error
}

// evaluating is an Observer with the events about evaluations.
type evaluating struct {
	Observer
	bus     *event.Bus
	batches int // of an evaluation
	job     *event.Job
}

// Evaluating implements train.Observer.
func (t *evaluating) Evaluating(began time.Time, done int) {
	if done == 0 {
		t.job = t.bus.Begin(event.Work{Task: event.Evaluating, Unit: "batches", Of: t.batches, Began: began})
		return
	}
	t.job.Do(done, t.batches)
	if done == t.batches {
		t.job.End()
	}
}
