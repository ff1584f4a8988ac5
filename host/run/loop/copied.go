package loop

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// copied reads every batch before it leaves the ring, on the copier's goroutine: for the baselines of the report, and
// for the batches of --debug-dir.
type copied struct {
	baselines *report.Baselines // may be nil, as debug
	alone     bool              // no other rank computes batches of an evaluation
	debug     *debug.Folder
	also      func(b *pipeline.Batch, layout *ring.Layout, slot []byte) error
}

func (c copied) read(b *pipeline.Batch, layout *ring.Layout, slot []byte) error {
	if c.baselines != nil && (c.alone || !b.Eval) { // an evaluation is compared with a baseline of the same rows
		c.baselines.Record(b.Eval, b.Rows, layout, slot)
	}
	if c.also != nil {
		if err := c.also(b, layout, slot); err != nil {
			return err
		}
	}
	if b.Eval || c.debug == nil {
		return nil
	}
	inputs := slices.DeleteFunc(slices.Clone(layout.Tensors),
		func(t ring.Tensor) bool { return t.Offset >= layout.InputBytes })
	return c.debug.Batch(debug.Batch{Step: b.Step + 1, Micro: b.Micro, Seed: b.Seed, Tensors: inputs, Slot: slot})
}
