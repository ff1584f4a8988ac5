package train_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// experiment is a run of one or more ranks in this process, over rows whose numbers are made from their place in the
// data.
type experiment struct {
	bundle     *ortgraphs.Bundle
	ranks      int
	rows       int // of a batch, on each rank
	accumulate int
	sums       bool           // the optimizers of ranks accumulate, also one micro-batch
	precision  manifest.DType // f32 if it is empty
	dropout    bool
	halves     bool  // one rank computes what two would, each batch in two micro-batches
	spoilt     int64 // the step in which rank 1 reads what is not a number; 0 for none
	saveAfter  int64 // the step after which rank 0 writes a checkpoint into dir, and the run ends; 0 for none
	dir        string
	resume     bool // from dir
}

// step is what a rank has seen of a step.
type step struct {
	event.Step
	rows    []int32
	empty   bool   // the rank had a batch of empty rows in it
	weights []byte // after it
	told    train.Tally
}

const seed = 3

// counts has more rows in each bucket than a batch of 8 holds: the last batches of an epoch have 1, 3 and 8 of them.
var counts = []int{9, 11, 8}

func (x experiment) plan(t *testing.T, w world.World) *dataset.Plan {
	t.Helper()
	var rows []dataset.Row
	for bucket, n := range counts {
		for range n {
			rows = append(rows, dataset.Row{Samples: x.bundle.Manifest.Buckets[bucket]["T_wav"]})
		}
	}
	p, err := dataset.NewPlan(rows,
		dataset.PlanConfig{Seed: seed, BatchSize: w.BatchSize(x.rows), Buckets: x.bundle.Manifest.Buckets})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run trains all ranks and returns what each has seen.
func (x experiment) run(t *testing.T) [][]step {
	t.Helper()
	seen := make([][]step, x.ranks)
	shared := &exchange{parts: make([][]train.Part, x.ranks), done: make(chan struct{})}
	g, ctx := errgroup.WithContext(t.Context())
	for rank := range x.ranks {
		r := x.newRank(t, world.World{Rank: rank, Size: x.ranks})
		for _, o := range r.loop.Optimizers {
			if x.ranks == 1 {
				continue
			}
			if err := o.Share(member{shared, rank, ctx}); err != nil {
				t.Fatal(err)
			}
		}
		g.Go(func() error {
			err := r.loop.Run(ctx)
			seen[rank] = r.seen
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return seen
}

// rank is a process of the world, as far as training goes: it is the feed and the observer of its loop.
type rank struct {
	experiment
	t       *testing.T
	world   world.World
	source  pipeline.Source
	layouts []ring.Layout
	loop    *train.Loop
	slots   []pipeline.DeviceSlot // for the batches of a window, in turn
	taken   int
	memory  []byte // a ring slot
	empty   bool
	seen    []step
}

func (x experiment) newRank(t *testing.T, w world.World) *rank {
	t.Helper()
	b := x.bundle.Manifest
	layouts, err := batch.Layouts(b.Buckets, x.rows, b.Inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := train.NewModel(train.ModelConfig{
		Bundle: x.bundle, Arenas: ortgraphs.NewArenas(b, x.bundle.Policy(x.precision)), Precision: x.precision,
		Layouts: layouts, Slots: x.accumulate, Threads: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := &rank{experiment: x, t: t, world: w, layouts: layouts, slots: make([]pipeline.DeviceSlot,
		x.accumulate), memory: make(
		[]byte, layouts[len(layouts)-1].Size)}
	for i := range r.slots {
		r.slots[i].Index = i
	}
	r.loop = &train.Loop{Model: m, Feed: r, Observer: r, Policy: train.Policy{MaxSkipped: 2}}
	for i, p := range b.InTurn() {
		o, err := train.NewOptimizer(m, i, p.Optimizer, x.accumulate > 1 || x.sums, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		r.loop.Optimizers = append(r.loop.Optimizers, o)
		r.loop.Policy.Schedules = append(r.loop.Policy.Schedules,
			schedule.Schedule{Name: "constant", BaseLR: p.Optimizer.LR})
	}
	if x.resume {
		r.restore()
	}
	if r.source = x.source(t, w, r.loop.Progress); x.halves {
		r.source = &halves{ranks: [2]pipeline.Source{
			x.source(t, world.World{Rank: 0, Size: 2}, r.loop.Progress),
			x.source(t, world.World{Rank: 1, Size: 2}, r.loop.Progress),
		}}
	}
	return r
}

func (x experiment) source(t *testing.T, w world.World, from train.Progress) *batch.Source {
	s := &batch.Source{Train: x.plan(t, w), Accumulate: x.accumulate, Epochs: 2, Seed: seed, World: w}
	if x.halves {
		s.Accumulate = 1
	}
	s.Start(from.Position())
	return s
}

// halves is the source of one rank that computes the batches of two, as the micro-batches of a window.
type halves struct {
	ranks [2]pipeline.Source
	micro int
}

func (h *halves) Next(b *pipeline.Batch) bool {
	if !h.ranks[h.micro].Next(b) {
		return false
	}
	b.Micro, b.Last, b.Seed = h.micro, h.micro == 1, dataset.GraphSeed(seed, b.Step, h.micro)
	h.micro = 1 - h.micro
	return true
}

// tally returns what a rank tells after a step.
func tally(rank int, step int64) train.Tally {
	return train.Tally{
		Stops: float32(rank), Samples: float32(step), Frames: float32(step) + 0.25*float32(rank),
		LeftOut: float32(2*step + int64(rank)),
	}
}

func (r *rank) identity() map[string]string {
	return map[string]string{"rows": fmt.Sprint(r.world.BatchSize(r.rows))}
}

func (r *rank) save() error {
	p := r.loop.Progress
	state := checkpoint.State{Step: p.Step, Epoch: p.Epoch, Batch: p.Batch, Hashes: r.identity()}
	for i, player := range r.bundle.Manifest.InTurn() {
		state.Add(checkpoint.Player{
			Name: player.Name, OptimizerStep: r.loop.Optimizers[i].Steps, Schedule: &r.loop.Policy.Schedules[i],
		})
	}
	_, err := checkpoint.NewStore(r.dir).Save(r.t.Context(), state, r.loop.Model.Weights(), r.loop.Optimizers.Moments())
	return err
}

func (r *rank) restore() {
	r.t.Helper()
	c, _, err := checkpoint.NewStore(r.dir).Latest()
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	if !maps.Equal(c.State.Hashes, r.identity()) {
		r.t.Fatalf("the checkpoint is that of %v, not %v", c.State.Hashes, r.identity())
	}
	if err := errors.Join(
		c.Restore(r.loop.Model.Weights(), r.loop.Optimizers.Moments()), r.loop.Model.Push(),
	); err != nil {
		r.t.Fatal(err)
	}
	for i, player := range r.bundle.Manifest.InTurn() {
		r.loop.Optimizers[i].Steps, _ = c.State.Updates(player.Name)
	}
	r.loop.Progress = train.Progress{Step: c.State.Step, Epoch: c.State.Epoch, Batch: c.State.Batch}
}

func (r *rank) Ready() bool                  { return false }
func (r *rank) LastWait() time.Duration      { return 0 }
func (r *rank) Release(*pipeline.DeviceSlot) {}
func (r *rank) Batch(*pipeline.DeviceSlot)   {}

func (r *rank) Acquire(ctx context.Context) (*pipeline.DeviceSlot, error) {
	slot := &r.slots[r.taken%len(r.slots)]
	b := &slot.Batch
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(r.seen) > 0 && r.loop.Progress.Step == r.saveAfter || !r.source.Next(b) {
		return nil, io.EOF
	}
	if !r.dropout {
		b.Seed = -1
	}
	r.empty = r.empty || slices.Max(b.Rows) < 0
	r.fill(b)
	if r.bundle.Manifest.Accumulation == manifest.Weighted {
		total := 0
		for _, n := range ort.View[int32](r.layouts[b.Bucket].View(r.memory, "mel_lengths")) {
			total += int(n)
		}
		b.Totals = []float64{float64(total)}
	}
	r.taken++
	return slot, r.loop.Model.Load(slot.Index, b.Bucket, r.memory)
}

func (r *rank) Step(s *event.Step) error {
	now := step{Step: *s, rows: slices.Clone(s.Rows), empty: r.empty, told: r.loop.Optimizers.TallySum()}
	r.loop.Optimizers.SetTally(tally(r.world.Rank, s.Step))
	now.Players, now.Metrics = slices.Clone(s.Players), slices.Clone(s.Metrics)
	for _, p := range r.loop.Model.Weights() {
		now.weights = append(now.weights, p.Data...)
	}
	r.seen, r.empty = append(r.seen, now), false
	if s.Step == r.saveAfter && r.world.Leads() {
		return r.save()
	}
	return nil
}

func (r *rank) Evaluating(time.Time, int)         {}
func (r *rank) Evaluated(*event.Evaluation) error { return nil }

// fill writes the inputs of a batch. What a row holds depends on its place in the data, its bucket and nothing else.
func (r *rank) fill(b *pipeline.Batch) {
	layout := &r.layouts[b.Bucket]
	limits := map[string]int{} // of lengths
	for _, in := range r.bundle.Manifest.Inputs {
		if in.Lengths != "" {
			tensor, _ := layout.Find(in.Name)
			limits[in.Lengths] = tensor.Shape[1]
		}
	}
	for place, in := range layout.Tensors {
		per := in.Bytes() / in.DType.Size() / r.rows
		for i, row := range b.Rows {
			value := func(j int) uint64 { return mix(uint64(row+1)<<40 + uint64(place)<<32 + uint64(j)) }
			if in.DType == manifest.F32 {
				for j, v := 0, ort.View[float32](in.In(r.memory))[i*per:][:per]; j < per; j++ {
					v[j] = float32(value(j)>>40)/(1<<23) - 1
				}
				continue
			}
			for j, v := 0, ort.View[int32](in.In(r.memory))[i*per:][:per]; j < per; j++ {
				switch limit, lengths := limits[in.Name]; {
				case lengths && row < 0:
					v[j] = 0
				case lengths:
					v[j] = 1 + int32(value(j)%uint64(limit))
				default:
					v[j] = 1 + int32(value(j)%2)
				}
			}
		}
	}
	if b.Step+1 == r.spoilt && r.world.Rank == 1 && b.Micro == 0 {
		ort.View[float32](layout.View(r.memory, "mel_spectrograms"))[0] = float32(math.NaN())
	}
}

// mix is the output function of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
