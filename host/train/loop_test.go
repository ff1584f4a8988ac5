package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// feed plays a list of batches from the model's one slot.
type feed struct {
	slot    pipeline.DeviceSlot
	batches []pipeline.Batch
	before  func(b *pipeline.Batch) // fills the slot
}

func (f *feed) Acquire(ctx context.Context) (*pipeline.DeviceSlot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(f.batches) == 0 {
		return nil, io.EOF
	}
	f.slot.Batch, f.batches = f.batches[0], f.batches[1:]
	if f.before != nil {
		f.before(&f.slot.Batch)
	}
	return &f.slot, nil
}

func (f *feed) Ready() bool                    { return false }
func (f *feed) Release(d *pipeline.DeviceSlot) { d.Batch = pipeline.Batch{} }
func (f *feed) LastWait() time.Duration        { return time.Millisecond }

// record keeps what an Observer is called with.
type record struct {
	windows    []event.Step
	evals      []event.Evaluation
	evaluating []int // batches done
	onStep     func(w *event.Step) error
}

func (r *record) Batch(*pipeline.DeviceSlot) {}
func (r *record) Step(w *event.Step) error {
	c := *w
	c.Rows, c.Metrics = append([]int32(nil), w.Rows...), append([]float64(nil), w.Metrics...)
	c.Players = append([]event.Player(nil), w.Players...)
	r.windows = append(r.windows, c)
	if r.onStep != nil {
		return r.onStep(w)
	}
	return nil
}
func (r *record) Evaluating(_ time.Time, done int)    { r.evaluating = append(r.evaluating, done) }
func (r *record) Evaluated(e *event.Evaluation) error { r.evals = append(r.evals, *e); return nil }

// steps returns windows of k micro-batches each.
func steps(n, k int) []pipeline.Batch {
	var out []pipeline.Batch
	for s := range n {
		for micro := range k {
			out = append(out, pipeline.Batch{
				Step: int64(s), Index: s*k + micro, Micro: micro, Last: micro == k-1, Seed: int64(10*s + micro),
				Rows: []int32{int32(s), -1, 2, 3},
			})
		}
	}
	return out
}

func newLoop(t *testing.T, f *feed, r *record, accumulating bool) *Loop {
	t.Helper()
	m, _, _, _ := batchOf(t, pico, "pico", 1)
	return &Loop{
		Model: m, Optimizers: Optimizers{newOptimizer(t, m, open(t, pico).Manifest.Optimizer, accumulating)}, Feed: f,
		Observer: r,
		Policy: Policy{
			Schedules: []schedule.Schedule{{Name: "constant", BaseLR: 1e-3, WarmupSteps: 2}}, MaxSkipped: 3,
		},
	}
}

func TestLoopLearns(t *testing.T) {
	r := &record{}
	l := newLoop(t, &feed{batches: steps(30, 1)}, r, false)
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, last := r.windows[0], r.windows[29]
	if !(last.Loss < 0.9*first.Loss) {
		t.Errorf("loss %v -> %v", first.Loss, last.Loss)
	}
	if first.Step != 1 || first.LR != 0.5e-3 || last.LR != 1e-3 || len(first.Rows) != 3 || first.Train <= 0 ||
		first.InputWait != time.Millisecond {
		t.Errorf("first window: %+v", first)
	}
	if p := l.Progress; p.Step != 30 || p.Batch != 30 || l.Optimizers[0].Steps != 30 {
		t.Errorf("progress %+v, %d updates", p, l.Optimizers[0].Steps)
	}
}

// TestWindowWithNaNIsSkippedWhole: one bad micro-batch takes its window along, and nothing else.
func TestWindowWithNaNIsSkippedWhole(t *testing.T) {
	r := &record{}
	f := &feed{batches: steps(4, 2)}
	l := newLoop(t, f, r, true)
	mel := ort.View[float32](l.Model.layouts[0].View(l.Model.slots[0].host, "mel_spectrograms"))
	good := mel[0]
	f.before = func(b *pipeline.Batch) {
		mel[0] = good
		if b.Step == 1 && b.Micro == 0 {
			mel[0] = float32(math.NaN())
		}
	}
	all := func() []byte {
		return bytes.Join(append([][]byte{}, l.Model.players[0].weights.host, l.Optimizers[0].state[0].host,
			l.Optimizers[0].state[1].host),
			nil)
	}
	var before []byte
	r.onStep = func(w *event.Step) error {
		switch w.Step {
		case 1:
			before = all()
		case 2:
			if !bytes.Equal(before, all()) {
				t.Error("a skipped window changed weights or moments")
			}
		}
		return nil
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, w := range r.windows {
		if w.Skipped != (i == 1) || math.IsNaN(w.Loss) != (i == 1) {
			t.Errorf("window %d: skipped %v, loss %v", i, w.Skipped, w.Loss)
		}
	}
	if l.Progress.Step != 4 || l.Optimizers[0].Steps != 3 || r.windows[2].LR != 1e-3 {
		t.Errorf("step %d, %d updates", l.Progress.Step, l.Optimizers[0].Steps)
	}
}

func TestLoopStopsWhenNothingIsFinite(t *testing.T) {
	r := &record{}
	l := newLoop(t, &feed{batches: steps(10, 1)}, r, false)
	ort.View[float32](l.Model.players[0].weights.host)[0] = float32(math.Inf(1))
	if err := l.Run(t.Context()); !errors.Is(err, ErrNotFinite) || len(r.windows) != 3 {
		t.Errorf("%d windows, %v", len(r.windows), err)
	}
}

// TestEmptyWindowIsSkipped: a window whose rows were all quarantined has nothing to say.
func TestEmptyWindowIsSkipped(t *testing.T) {
	r := &record{}
	l := newLoop(t, &feed{batches: steps(2, 1)}, r, false)
	for row := range 4 {
		empty(&l.Model.layouts[0], l.Model.slots[0].host, row)
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.windows[0].Skipped || l.Optimizers[0].Steps != 0 {
		t.Errorf("%+v, %d updates", r.windows[0], l.Optimizers[0].Steps)
	}
}

func TestEvaluationIsTheWeightedMean(t *testing.T) {
	r := &record{}
	f := &feed{batches: []pipeline.Batch{
		{Eval: true, Index: 0, Rows: []int32{0, 1, 2, 3}},
		{Eval: true, Index: 1, Last: true, Rows: []int32{4, -1, -1, -1}},
	}}
	l := newLoop(t, f, r, false)
	layout, slot := &l.Model.layouts[0], l.Model.slots[0].host
	var want, weight float64
	f.before = func(b *pipeline.Batch) {
		if b.Index == 1 {
			for row := 1; row < 4; row++ {
				empty(layout, slot, row)
			}
		}
		res, err := l.Model.Evaluate(0, 0)
		if err != nil {
			t.Error(err)
		}
		want += res.Loss * res.Weight
		weight += res.Weight
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.evaluating); got != "[0 1 2]" {
		t.Errorf("batches done %s", got)
	}
	if len(r.evals) != 1 || math.Abs(r.evals[0].Loss-want/weight) > 1e-12 || r.evals[0].Samples != 5 ||
		l.Progress.Best == nil {
		t.Errorf("%+v, want loss %v", r.evals, want/weight)
	}
	if l.Progress.Step != 0 || l.Optimizers[0].Steps != 0 {
		t.Error("an evaluation trained")
	}
}

func TestStopEndsAfterTheWindow(t *testing.T) {
	r := &record{}
	stop := make(chan struct{})
	l := newLoop(t, &feed{batches: steps(100, 2)}, r, true)
	l.Stop = stop
	r.onStep = func(w *event.Step) error {
		if w.Step == 3 {
			close(stop)
		}
		return nil
	}
	err := l.Run(t.Context())
	if !errors.Is(err, exit.ErrInterrupted) || l.Progress.Step < 3 || l.Progress.Step == 100 {
		t.Errorf("step %d, %v", l.Progress.Step, err)
	}
}

// TestEvaluationOfNothingIsNoBest: a validation set without a usable clip has no loss, and the best one is still to
// come.
func TestEvaluationOfNothingIsNoBest(t *testing.T) {
	r := &record{}
	f := &feed{batches: []pipeline.Batch{{Eval: true, Last: true, Rows: []int32{-1, -1, -1, -1}}}}
	l := newLoop(t, f, r, false)
	for row := range 4 {
		empty(&l.Model.layouts[0], l.Model.slots[0].host, row)
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.evals) != 1 || !math.IsNaN(r.evals[0].Loss) || l.Progress.Best != nil {
		t.Errorf("%+v, best %+v", r.evals, l.Progress.Best)
	}
}
