package train

import (
	"bytes"
	"context"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// twoSlots plays a list of batches from two slots alternately. A batch is always ready.
type twoSlots struct {
	*testing.T
	model   *Model
	batches []pipeline.Batch
	held    [2]bool
	slots   [2]pipeline.DeviceSlot
	most    int // held at a time
	next    int
	fill    func(b *pipeline.Batch, slot int)
}

func (f *twoSlots) Ready() bool { return f.next < len(f.batches) }

func (f *twoSlots) Acquire(context.Context) (*pipeline.DeviceSlot, error) {
	if !f.Ready() {
		return nil, io.EOF
	}
	turn := f.next % 2
	if f.held[turn] {
		f.Fatalf("batch %d: two are held", f.next)
	}
	f.held[turn] = true
	if f.held[1-turn] {
		f.most = 2
	}
	d := &f.slots[turn]
	d.Index, d.Batch = turn, f.batches[f.next]
	f.next++
	f.fill(&d.Batch, turn)
	return d, nil
}

func (f *twoSlots) Release(d *pipeline.DeviceSlot) {
	f.held[d.Index], d.Batch = false, pipeline.Batch{}
}
func (f *twoSlots) LastWait() time.Duration { return 0 }

// played is what a run of the loop gives.
type played struct {
	windows []event.Step
	evals   []event.Evaluation
	weights []byte
	most    int // batches held at a time
}

// play trains for six steps on a device, with an evaluation after the second step. The batch of the fourth is not
// finite.
func play(t *testing.T, d Device, micros int) played {
	t.Helper()
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 2, Threads: 1, Device: d, CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	batches := steps(6, micros)
	eval := []pipeline.Batch{{Eval: true, Rows: []int32{0, 1}}, {Eval: true, Index: 1, Last: true, Rows: []int32{0}}}
	f := &twoSlots{T: t, model: m, batches: slices.Concat(batches[:2*micros], eval, batches[2*micros:])}
	f.fill = func(p *pipeline.Batch, slot int) {
		room := input(t, m)
		g.fill(t, g.Steps[0], &layouts[0], room)
		mel := ort.View[float32](layouts[0].View(room, "mel_spectrograms"))
		mel[f.next] += float32(f.next) // all batches differ
		if !p.Eval && p.Step == 3 {
			mel[0] = float32(math.NaN())
		}
		if !d.onGPU() {
			copy(m.slots[slot].host, room)
		} else if err := m.Load(slot, 0, room); err != nil {
			t.Fatal(err)
		}
	}
	var updates []time.Time // when the GPU had done each, by its own clock
	if d.Timer != nil {
		d.Timer.Spent = func(w Work, _, ended time.Time) {
			if w == Optimizing {
				updates = append(updates, ended)
			}
		}
	}
	seen := new(record)
	runPlayed(t, &Loop{
		Model: m, Optimizers: Optimizers{newOptimizer(t, m, g.Optimizer, micros > 1)}, Feed: f, Observer: seen,
		Policy: Policy{Schedules: []schedule.Schedule{{Name: "constant", BaseLR: 1e-3, WarmupSteps: 4}}, MaxSkipped: 2},
	}, f)
	o := played{weights: bytes.Clone(m.players[0].weights.host), most: f.most}
	o.keepSteps(t, seen, updates)
	return o
}

// runPlayed runs the loop to its end and brings the weights to the host.
func runPlayed(t *testing.T, l *Loop, f *twoSlots) {
	t.Helper()
	if _, err := l.Model.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Optimizers[0].Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.held != [2]bool{} || l.Progress.Step != 6 || l.Optimizers[0].Steps != 5 || l.Optimizers[0].Incomplete() {
		t.Errorf("held %v, progress %+v, %d updates, incomplete %v", f.held, l.Progress, l.Optimizers[0].Steps,
			l.Optimizers[0].Incomplete())
	}
	if err := l.Model.Pull(); err != nil {
		t.Fatal(err)
	}
}

// keepSteps checks the times of all steps, and keeps what must be equal in every run.
func (o *played) keepSteps(t *testing.T, seen *record, updates []time.Time) {
	t.Helper()
	for i, w := range seen.windows {
		// An evaluation is between the second window and the third.
		if len(updates) > 0 && i != 0 && i != 2 && w.Time != updates[i].Sub(updates[i-1]) {
			t.Errorf("step %d took %v, want the %v from update to update", w.Step, w.Time, updates[i].Sub(updates[i-1]))
		}
		if rest := w.Time - w.InputWait - w.Train - w.Optimize; rest < 0 {
			t.Errorf("step %d: the parts are %v longer than the whole", w.Step, -rest)
		}
		if w.Skipped != (w.Step == 4) {
			t.Errorf("step %d: skipped %v", w.Step, w.Skipped)
		}
		if w.Skipped { // NaN is not equal to itself
			w.Loss, w.Own, w.Metrics, w.GradNorm = 0, 0, nil, 0
		}
		w.Time, w.Train, w.Optimize, w.GPUTrain, w.GPUOptimize = 0, 0, 0, 0, 0
		o.windows = append(o.windows, w)
	}
	for _, e := range seen.evals {
		e.Time, e.Metrics = 0, slices.Clone(e.Metrics)
		o.evals = append(o.evals, e)
	}
}

// TestAheadChangesNothing trains one batch ahead on a fake GPU, and step by step on the CPU. Every window has the same
// bits, also after one that is skipped, around evaluations, and in micro-batches.
func TestAheadChangesNothing(t *testing.T) {
	for _, micros := range []int{1, 2} {
		d, _ := fakeDevice(t)
		var err error
		if d.Timer, err = NewTimer(d); err != nil {
			t.Fatal(err)
		}
		defer d.Timer.Close()
		want, got := play(t, Device{}, micros), play(t, d, micros)
		if want.most != 0 || got.most != 2 {
			t.Errorf("held two batches: %d on the CPU, %d ahead", want.most, got.most)
		}
		if !reflect.DeepEqual(got.windows, want.windows) || len(got.windows) != 6 {
			t.Errorf("%d micro-batches: windows\n%+v, want\n%+v", micros, got.windows, want.windows)
		}
		if !reflect.DeepEqual(got.evals, want.evals) || len(got.evals) != 1 {
			t.Errorf("%d micro-batches: evaluations %+v, want %+v", micros, got.evals, want.evals)
		}
		if !bytes.Equal(got.weights, want.weights) {
			t.Errorf("%d micro-batches: other weights", micros)
		}
	}
}

// TestWindowEndsWhenTheDeviceIsDone plays three steps of 200 ms. To queue a batch takes 20 ms in which the GPU computes
// already, and the result of one is looked at after that: but for the last, which has no batch after it.
func TestWindowEndsWhenTheDeviceIsDone(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	l := &Loop{before: boundary{at(0), at(0)}}
	for i, seen := range []time.Duration{220 * ms, 420 * ms, 600 * ms} {
		const other = ms
		l.window.InputWait, l.window.Optimize = 0, 3*ms
		l.window.Train = at(seen).Sub(l.before.host) - l.window.Optimize - other
		l.end(at(seen), at(time.Duration(i+1)*200*ms))
		if w := l.window; w.Time != 200*ms || w.Train != 196*ms {
			t.Errorf("step %d: %v, of which to train %v; want 200ms and 196ms", i+1, w.Time, w.Train)
		}
	}
}
