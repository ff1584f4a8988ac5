package host

import (
	"context"
	"encoding/binary"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// split is a data set with what fills batches from it.
type split struct {
	name    string // report.Train or report.Validation
	index   *dataset.Index
	plan    *dataset.Plan
	fillers []*dataset.Filler // one per worker
	bad     *dataset.Quarantine
}

func newSplit(name string, ix *dataset.Index, plan *dataset.Plan, seed int64, workers int) *split {
	s := &split{name: name, index: ix, plan: plan, bad: new(dataset.Quarantine)}
	refs := dataset.NewReferences(ix, seed)
	for range workers {
		s.fillers = append(s.fillers, dataset.NewFiller(ix, refs, s.bad))
	}
	return s
}

// road is where the pipeline meets memory: it decodes into ring slots, has stages work on them, and copies them to the
// device slots.
type road struct {
	seed    int64
	ring    *ring.Ring
	layouts []ring.Layout
	guards  *guards
	made    [][]ring.Tensor // by bucket: the tensors of the data set
	train   *split
	val     *split // nil without validation data
	tensors [][]dataset.Tensor
	unread  func(s *split, bad []dataset.BadRow) error // told of rows that cannot be read, again in each epoch
}

// of returns the data set of a batch.
func (r *road) of(b *pipeline.Batch) *split {
	if b.Eval {
		return r.val
	}
	return r.train
}

// Decode implements pipeline.Decoder.
func (r *road) Decode(_ context.Context, worker int, b *pipeline.Batch) ([]pipeline.Rejected, error) {
	slot, s := r.ring.Slot(b.Slot), r.of(b)
	r.guards.begin(b)
	tensors := r.tensors[worker][:0]
	for _, t := range r.made[b.Bucket] {
		tensors = append(tensors, dataset.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Pad: t.Pad, Data: t.In(slot)})
	}
	r.tensors[worker] = tensors
	bad, err := s.fillers[worker].Fill(dataset.Batch{Epoch: b.Epoch, Index: b.Index, Bucket: b.Bucket, Rows: b.Rows}, tensors)
	if err != nil || len(bad) == 0 {
		return nil, err
	}
	var rejected []pipeline.Rejected
	for _, row := range bad {
		if row.Position >= 0 {
			rejected = append(rejected, pipeline.Rejected{Row: row.Position, Reason: row.Reason})
		}
	}
	return rejected, r.unread(s, bad)
}

// copier is the pipeline's device.
type copier struct {
	road   *road
	model  *train.Model
	frames []int // by device slot
	// lengths names the tensor that frames are counted by, "" when there is none.
	lengths string
	gpu     gpu.Context // nil on the CPU
	bound   bool
	// reached is told that a batch is about to be copied. It may be nil.
	reached func()
	// seen is told of every batch while it still lies in the ring. It may be nil.
	seen func(b *pipeline.Batch, layout *ring.Layout, slot []byte)
}

// bind prepares the thread of the pipeline's goroutine that copies, which is its own from then on, for the GPU.
func (c *copier) bind() error {
	if c.gpu == nil || c.bound {
		return nil
	}
	runtime.LockOSThread()
	c.bound = true
	return c.gpu.Bind()
}

// Copy implements pipeline.Device. It looks at the guards behind the copy: what they cover was sound until then.
func (c *copier) Copy(dst int, b *pipeline.Batch) error {
	if err := c.bind(); err != nil {
		return err
	}
	if c.reached != nil {
		c.reached()
	}
	slot, layout := c.road.ring.Slot(b.Slot), &c.road.layouts[b.Bucket]
	if err := c.model.Load(dst, b.Bucket, slot); err != nil {
		return err
	}
	if err := c.road.guards.check(b, nil); err != nil {
		return err
	}
	n := 0
	for lengths := layout.View(slot, c.lengths); len(lengths) >= 4; lengths = lengths[4:] {
		n += int(binary.LittleEndian.Uint32(lengths))
	}
	c.frames[dst] = n
	if c.seen != nil {
		c.seen(b, layout, slot)
	}
	return nil
}
