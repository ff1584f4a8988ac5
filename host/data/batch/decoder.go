package batch

import (
	"context"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// decoder starts batches: it decodes the tensors of the data set into ring slots.
type decoder struct {
	*common
	made    [][]ring.Tensor // by bucket: the tensors of the data set
	tensors [][]dataset.Tensor
	unread  func(s *Split, bad []dataset.BadRow) error // receives the rows that cannot be read, again in each epoch
	before  func()                                     // Hooks.Decode
}

// Decode implements pipeline.Decoder.
func (d *decoder) Decode(_ context.Context, worker int, b *pipeline.Batch) ([]pipeline.Rejected, error) {
	if d.before != nil {
		d.before()
	}
	slot, s := d.ring.Slot(b.Slot), d.data.splitOf(b)
	d.proof.decode(b.Slot)
	defer d.proof.decoded(b.Slot, b.Bucket)
	d.guards.begin(b)
	d.seals.begin(b.Slot)
	defer d.seals.set(b.Slot, d.made[b.Bucket])
	tensors := d.tensors[worker][:0]
	for _, t := range d.made[b.Bucket] {
		tensors = append(tensors,
			dataset.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Pad: t.Pad, Data: t.In(slot)})
	}
	d.tensors[worker] = tensors
	bad, err := s.fillers[worker].Fill(dataset.Batch{Epoch: b.Epoch, Index: b.Index, Bucket: b.Bucket, Rows: b.Rows},
		tensors)
	d.crops[b.Slot] = append(d.crops[b.Slot][:0], s.fillers[worker].References()...)
	if err != nil || len(bad) == 0 {
		return nil, err
	}
	var rejected []pipeline.Rejected
	for _, row := range bad {
		if row.Position >= 0 {
			rejected = append(rejected, pipeline.Rejected{Row: row.Position, Reason: row.Reason})
		}
	}
	return rejected, d.unread(s, bad)
}
