package pipeline

import (
	"context"
	"errors"
	"time"
)

// Batch says what a slot holds. The pipeline reuses one per slot: nobody keeps a pointer beyond the call
// that got it, or beyond Release.
type Batch struct {
	// Epoch and Index name the batch in the plan.
	Epoch, Index int
	// Step is the optimizer step that the batch belongs to, Micro its place in the accumulation window of that
	// step, and Last marks the window's end.
	Step  int64
	Micro int
	Last  bool
	// Seed drives the dropout of the training graph.
	Seed int64
	// Eval marks a batch of the validation set: augmenting stages skip it.
	Eval bool
	// Bucket is the index of the bucket that gives the tensors their shapes.
	Bucket int
	// Rows holds the data set's row of every row of the batch, -1 for an empty one.
	Rows []int32
	// LeftOut holds the data set's rows that the plan has in this batch and that are empty in it, since they cannot be used. The
	// pipeline keeps it.
	LeftOut []int32
	// Slot is the ring slot the batch is built in.
	Slot int

	seq   uint64
	built time.Time // when it was finished
	cost  []cost    // of each phase
}

// Order numbers batches in the order in which they are trained on.
func (b *Batch) Order() uint64 { return b.seq }

// cost is what one phase took of one batch.
type cost struct {
	queue time.Duration // waiting for its turn
	busy  time.Duration // being worked on
}

func (b *Batch) copyTo(dst *Batch) {
	rows, left, costs := dst.Rows[:0], dst.LeftOut[:0], dst.cost[:0]
	*dst = *b
	dst.Rows = append(rows, b.Rows...)
	dst.LeftOut = append(left, b.LeftOut...)
	dst.cost = append(costs, b.cost...)
}

// Source is the plan. Next fills the descriptive fields of b (reusing b.Rows) and reports whether there was
// another batch. Calls never overlap.
type Source interface {
	Next(b *Batch) bool
}

// Rejected is a row that cannot be trained on.
type Rejected struct {
	Row    int // in the batch
	Reason string
	Phase  string // set by the pipeline: "decode", or the stage's name
}

// Decoder writes the data set's tensors of a batch into its ring slot. worker is below Config.Workers and
// belongs to this call while it lasts, so a Decoder may keep buffers for each. Rows that it returns were left empty;
// an error stops the run.
type Decoder interface {
	Decode(ctx context.Context, worker int, b *Batch) ([]Rejected, error)
}

// Stage runs one stage over the batch in its ring slot. It returns the time it worked, without the time it waited for
// its turn. When it returns rows, they are emptied and the batch is built again. An error that wraps ErrRebuild makes the
// batch be built again as it is, any other stops the run. When Process returns, whatever the outcome, nothing
// writes to the slot any more.
type Stage interface {
	Process(ctx context.Context, b *Batch) ([]Rejected, time.Duration, error)
}

// Device owns the device slots. Copy moves the batch in ring slot b.Slot to device slot dst and returns when the ring slot
// may be used again and the device slot may be trained on. An error that wraps ErrRebuild makes the batch be built again, for
// the same device slot; any other stops the run. Calls never overlap; they run beside training.
type Device interface {
	Copy(dst int, b *Batch) error
}

// ErrRebuild marks a failure that another attempt cures: the process that served the stage is gone, or the slot's content is
// not to be trusted.
var ErrRebuild = errors.New("batch must be built again")
