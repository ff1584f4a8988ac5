package pipeline

import (
	"context"
	"time"
)

// Feed delivers batches in the order of the plan, as a Pipeline does: Acquire waits for the next and returns
// io.EOF after the last. Two may be held at a time, if Ready reports that Acquire will not wait.
type Feed interface {
	Ready() bool
	Acquire(ctx context.Context) (*DeviceSlot, error)
	Release(*DeviceSlot)
	LastWait() time.Duration
}

// Position is a place in the sequence of a run's batches.
type Position struct {
	// Step is the number of completed windows.
	Step int64
	// Epoch and Batch name the next batch.
	Epoch, Batch int
	// EvaluatedStep is the step of the last evaluation, 0 before the first.
	EvaluatedStep int64
}
