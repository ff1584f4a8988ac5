package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
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
	made    [][]ring.Tensor // by bucket: the tensors of the data set
	train   *split
	val     *split // nil without validation data
	tensors [][]dataset.Tensor
	unread  func(s *split, bad []dataset.BadRow) error // told of rows that cannot be read
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
	r.layouts[b.Bucket].WriteGuards(slot)
	for i, row := range b.Rows {
		if row >= 0 && s.bad.Has(row) {
			b.Rows[i] = -1 // known since an earlier epoch
		}
	}
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

// stageRunner sends batches to one stage instance.
type stageRunner struct {
	road     *road
	pool     *supervise.Pool
	instance catalog.Instance
	keys     [][]byte       // by ring slot
	failed   []atomic.Int32 // by ring slot: failures of the batch in a row
}

// maxFailures of one batch in a row end the run: what fails three times fails for a reason.
const maxFailures = 3

func newStageRunner(r *road, pool *supervise.Pool, instance catalog.Instance, batchSize int) *stageRunner {
	s := &stageRunner{road: r, pool: pool, instance: instance, failed: make([]atomic.Int32, r.ring.Slots())}
	for range r.ring.Slots() {
		s.keys = append(s.keys, make([]byte, batchSize*stage.KeySize))
	}
	return s
}

// Process implements pipeline.Stage.
func (s *stageRunner) Process(ctx context.Context, b *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	keys, rows := s.keys[b.Slot], s.road.of(b).index.Rows
	clear(keys)
	for i, row := range b.Rows {
		if row >= 0 {
			key := dataset.RowKey(s.road.seed, b.Epoch, rows[row].ID, s.instance.Name)
			copy(keys[i*stage.KeySize:], key[:])
		}
	}
	res, err := s.pool.Call(ctx, supervise.Request{
		Instance: s.instance.Index, Slot: b.Slot, Bucket: b.Bucket, Epoch: int64(b.Epoch), Step: b.Step, RowKeys: keys,
	})
	switch {
	case errors.Is(err, supervise.ErrLost):
		return nil, res.Busy, fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
	case errors.Is(err, supervise.ErrFailed) && s.failed[b.Slot].Add(1) < maxFailures:
		return nil, res.Busy, fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
	case err != nil:
		return nil, res.Busy, err
	}
	s.failed[b.Slot].Store(0)
	if err := s.road.layouts[b.Bucket].CheckGuards(s.road.ring.Slot(b.Slot)); err != nil {
		s.pool.Kick(res.Process, err.Error())
		return nil, res.Busy, fmt.Errorf("%w: %w", pipeline.ErrRebuild, err)
	}
	if len(res.Bad) == 0 {
		return nil, res.Busy, nil
	}
	rejected := make([]pipeline.Rejected, len(res.Bad))
	for i, bad := range res.Bad {
		rejected[i] = pipeline.Rejected{Row: bad.Row, Reason: s.instance.Name + ": " + bad.Reason}
	}
	return rejected, res.Busy, nil
}

// copier is the pipeline's device.
type copier struct {
	road   *road
	model  *train.Model
	frames []int // by device slot
	// lengths names the tensor that frames are counted by, "" when there is none.
	lengths string
	// seen is told of every batch while it still lies in the ring. It may be nil.
	seen func(b *pipeline.Batch, layout *ring.Layout, slot []byte)
}

// Copy implements pipeline.Device.
func (c *copier) Copy(dst int, b *pipeline.Batch) error {
	slot, layout := c.road.ring.Slot(b.Slot), &c.road.layouts[b.Bucket]
	c.model.Load(dst, b.Bucket, slot)
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
