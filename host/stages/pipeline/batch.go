package pipeline

import (
	"context"
	"errors"
	"time"
)

// Batch describes the content of a slot. The pipeline reuses one Batch per slot: do not keep a pointer to it after the
// call that received it, or after Release.
type Batch struct {
	// Epoch and Index identify the batch in the plan.
	Epoch, Index int
	// Step is the optimizer step of the batch, Micro its index in the accumulation window of that step. Last marks the
	// last batch of the window.
	Step  int64
	Micro int
	Last  bool
	// Seed is the dropout seed of the training graph.
	Seed int64
	// Eval marks a batch of the validation set. Augment stages skip it.
	Eval bool
	// Bucket is the index of the bucket, which determines the shapes of the tensors.
	Bucket int
	// Rows holds, for each row of the batch, the row of the data set, or -1 for an empty row.
	Rows []int32
	// LeftOut holds the data set's rows that the plan puts into this batch but that are left empty because they are
	// unusable. The pipeline sets it.
	LeftOut []int32
	// Totals are the sums of Config.Measure over the batches of the optimizer step, or of this batch if it is one of
	// the validation set.
	Totals []float64
	// Slot is the ring slot of the batch.
	Slot int

	seq   uint64
	built time.Time     // when it was finished
	cost  []cost        // of each phase
	apart time.Duration // from the batch before, as adapt.Batch has it
	held  bool          // likewise
}

// Samples is the number of rows that are not empty.
func (b *Batch) Samples() (n int) {
	for _, row := range b.Rows {
		if row >= 0 {
			n++
		}
	}
	return n
}

// Order numbers batches in the order of training.
func (b *Batch) Order() uint64 { return b.seq }

// cost is the time of one phase for one batch.
type cost struct {
	queue time.Duration // waiting for its turn
	busy  time.Duration // working
}

func (b *Batch) copyTo(dst *Batch) {
	rows, left, costs, totals := dst.Rows[:0], dst.LeftOut[:0], dst.cost[:0], dst.Totals[:0]
	*dst = *b
	dst.Rows = append(rows, b.Rows...)
	dst.LeftOut = append(left, b.LeftOut...)
	dst.cost = append(costs, b.cost...)
	dst.Totals = append(totals, b.Totals...)
}

// Source is the plan. Next fills the descriptive fields of b (reusing b.Rows) and reports whether there was another
// batch. Calls never overlap.
type Source interface {
	Next(b *Batch) bool
}

// Rejected is a row that cannot be trained on.
type Rejected struct {
	Row    int // index in the batch
	Reason string
	Phase  string // set by the pipeline: "decode", or the stage's name
}

// Decoder writes the data set's tensors of a batch into its ring slot. worker is below Config.Workers and reserved for
// this call, so a Decoder may keep buffers for each worker. The rows that it returns were left empty. An error stops
// the run.
type Decoder interface {
	Decode(ctx context.Context, worker int, b *Batch) ([]Rejected, error)
}

// Stage runs one stage on the batch in its ring slot. It returns the time that it worked, without the wait for its
// turn. If it returns rows, the pipeline empties them and rebuilds the batch. An error that wraps ErrRebuild makes the
// pipeline rebuild the batch unchanged; any other error stops the run. After Process has returned, with any result,
// nothing writes to the slot.
type Stage interface {
	Process(ctx context.Context, b *Batch) ([]Rejected, time.Duration, error)
}

// Device owns the device slots. Copy copies the batch in ring slot b.Slot to device slot dst. It returns when the ring
// slot may be reused and the device slot is ready for training. An error that wraps ErrRebuild makes the pipeline
// rebuild the batch for the same device slot; any other error stops the run. Calls never overlap. They overlap with
// training.
type Device interface {
	Copy(dst int, b *Batch) error
}

// ErrRebuild marks a failure after which another attempt can succeed: the process of the stage is lost, or the content
// of the slot is not trustworthy.
var ErrRebuild = errors.New("batch must be rebuilt")
