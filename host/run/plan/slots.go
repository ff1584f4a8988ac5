package plan

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// minSlots is the smallest value of --slots: one batch is transferred during training on another.
const minSlots = 2

// Slots are the slots for batches of one size.
type Slots struct {
	Layouts []ring.Layout // by bucket
	Device  int           // slots there
}

// held returns the number of batches that stay in device slots until the last player has trained on them.
func (t *Training) held(accumulate int) int {
	if len(t.Players) == 1 {
		return 0
	}
	return accumulate
}

// Size returns the bytes of a batch in the ring.
func (s *Slots) Size() int {
	size := 0
	for _, l := range s.Layouts {
		size = max(size, l.Size)
	}
	return size
}

// Ring has the settings for prepared batches. Config.BufferSize is the number of ring slots.
type Ring struct {
	Asked    int    // slots, before they were lowered to fit
	Limit    string // what they fit: --ring-memory or the machine
	Prefetch int    // batches to prepare before the first step
}

// SlotsFor sizes the slots for batches of so many rows, with the buckets that such a run would have.
func (p *Plan) SlotsFor(rows int) (s Slots, err error) {
	s.Device = int(p.Config.Slots)
	if s.Device == 0 {
		s.Device = max(3, min(8, 64/rows), p.held(p.Config.Accumulate)+1)
	}
	sizes := p.Buckets.Sizes
	if p.Buckets.perBatch && rows != p.Config.BatchSize {
		if sizes, _, err = computeBuckets(p, rows, nil); err != nil {
			return s, err
		}
	}
	s.Layouts, err = batch.Layouts(sizes, rows, p.Stages.Resolved.Inputs, p.Stages.Resolved.Intermediates)
	return s, err
}

// tooShort adds to an error of a plan that the lengths of its buckets were asked for.
func (d *Draft) tooShort(err error) error {
	if asked := &d.Config.Buckets; errors.Is(err, dataset.ErrNoRows) && asked.Seconds != nil {
		return hint.Errorf("give --buckets a longer last length, or leave it out", "--buckets %s: %w", asked, err)
	}
	return err
}

// noneFits adds to an error of the plan of validation data that nobody has named them.
func noneFits(d *Draft, err error) error {
	if errors.Is(err, dataset.ErrNoRows) && d.Data.Share > 0 && d.Config.ValData == "" {
		return hint.Errorf("name other clips with --val-data, or evaluate on none with --val-share 0",
			"--val-share %g: %w", d.Data.Share, err)
	}
	return err
}

// Fit settles the buckets, plans the order of batches and sizes the slots.
func (d *Draft) Fit(context.Context) error {
	c := d.Config
	if err := d.settleBuckets(); err != nil {
		return err
	}
	plan := dataset.PlanConfig{
		Seed: c.Seed, BatchSize: d.World.BatchSize(c.BatchSize), Buckets: d.Buckets.Sizes,
		MaxGrowth: d.Stages.Resolved.MaxGrowth, Columns: d.columns,
	}
	if d.Buckets.Computed != "" && c.Buckets.Auto() {
		plan.Limits = d.Bundle.Manifest.Dynamic
	}
	p, err := dataset.NewPlan(d.Data.Train.Index.Rows, plan)
	if err != nil {
		return d.tooShort(err)
	}
	d.Data.Train = batch.NewSplit(report.Train, d.Data.Train.Index, p, c.Seed, d.MostDecoders())
	if d.Data.Val != nil {
		plan.BatchSize = c.BatchSize // each rank evaluates on all rows
		if p, err = dataset.NewEvalPlan(d.Data.Val.Index.Rows, plan); err != nil {
			return fmt.Errorf("validation: %w", noneFits(d, d.tooShort(err)))
		}
		d.Data.Val = batch.NewSplit(report.Validation, d.Data.Val.Index, p, c.Seed, d.MostDecoders())
	}
	d.Data.SumUp(d.Buckets.Sizes, d.Bundle.Manifest.Features)
	d.Data.Usage.Folders = d.Stages.DataUsed()
	if d.Slots, err = d.SlotsFor(c.BatchSize); err != nil {
		return err
	}
	if c.Slots == 0 { // an epoch with fewer batches never fills more
		d.Slots.Device = max(minSlots, min(d.Slots.Device, d.Data.Train.Plan.Batches()))
	}
	if d.Ring, err = d.sizeRing(); err != nil {
		return err
	}
	if err := d.checkWindow(); err != nil {
		return err
	}
	if err := d.planAdaptive(); err != nil {
		return err
	}
	d.Hashes = d.identity()
	return nil
}

func (d *Draft) sizeRing() (Ring, error) {
	c, slot := d.Config, d.Slots.Size()
	// The smaller the batch, the shorter the step, and the more batches are prepared ahead.
	r := Ring{Asked: c.BufferSize, Prefetch: max(2, min(8, 64/c.BatchSize))}
	room, why := d.ringRoom()
	r.Limit = why
	most := room / slot
	if most < 1 {
		return r, hint.Errorf(fmt.Sprintf("a slot needs %d MiB, and less with a smaller --batch-size", slot>>20+1),
			"%s holds no slot of %.1f MiB", why, float64(slot)/(1<<20))
	}
	if most < c.BufferSize {
		lowered := *c
		lowered.BufferSize = most
		d.Config = &lowered
		d.Changes = append(d.Changes,
			config.Change{Name: "buffer-size", Value: strconv.Itoa(most), Origin: "lowered to fit " + why})
	}
	return r, nil
}

// checkWindow refuses settings with which the batches of a step cannot be held until its last player trains on them, or
// with which the totals of a step cannot be known before its first batch.
func (d *Draft) checkWindow() error {
	if slots, held := d.Slots.Device, d.held(d.Config.Accumulate); slots < held && slots < d.Data.Train.Plan.Batches() {
		return hint.Errorf("leave --slots out, raise it, or lower --accumulate",
			"the bundle has several players: %s cannot hold the %d batches of a step until the last one has trained "+
				"on them",
			units.Count(slots, "device slot"), held)
	}
	if d.Bundle.Manifest.Accumulation != manifest.Weighted {
		return nil
	}
	if slots, batches := d.Config.BufferSize, d.Config.Accumulate; batches > slots {
		return hint.Errorf("raise --buffer-size and --ring-memory, or lower --accumulate",
			"the bundle's accumulation is weighted: a ring of %s cannot hold the %d batches of a step",
			units.Count(slots, "slot"),
			batches)
	}
	return nil
}

// ringRoom returns how many bytes the ring may take, and the name of the limit: --ring-memory, and at most half of the
// memory, so that waiting batches do not use up a container's memory. The ranks of a machine share that half.
func (d *Draft) ringRoom() (room int, why string) {
	total, what := d.limits.Total()
	if half := int(total/2) / d.Fed(); half > 0 && half < int(d.Config.RingMemory) {
		return half, fmt.Sprintf("half of %s (%d MiB)%s", what, total>>20, d.ForRanks())
	}
	return int(d.Config.RingMemory), "--ring-memory " + d.Config.RingMemory.String()
}

// MemoryFor plans the memory of the model GPU: the fixed needs of the bundle and of batches of that size, and the rest
// for the graphs.
func (p *Plan) MemoryFor(s Slots) memory.Plan {
	all := p.Memory()
	return memory.Plan{
		Limit:  int(p.Placement.Model.Limit),
		Arenas: all.Total() - all.Copies,
		Copies: all.Copies,
		Slots:  s.Device * train.SlotBytes(s.Layouts),
		Others: p.received(all.Gradients),

		Samples: p.Samples.Bytes,
	}
}

// received is the memory for the gradients of the other ranks, where the GPUs of a machine copy them to each other.
func (p *Plan) received(gradients int) int {
	w := p.World
	if w.Alone() || !w.Near() || !p.OnGPU() || p.Accumulates() || p.Config.RankSums == config.SumsAfter {
		return 0
	}
	return (w.Size - 1) * gradients
}
