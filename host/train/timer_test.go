package train

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

const ms = time.Millisecond

// bench is a timer on a fake GPU in virtual time.
type bench struct {
	*testing.T
	*Timer
	card  *gputest.Context
	began time.Time
	spent []interval
}

// interval is one call of Spent, in milliseconds since the creation of the bench.
type interval struct {
	work         Work
	began, ended float64
}

func newBench(t *testing.T) *bench {
	d, card := fakeDevice(t)
	timer, err := NewTimer(d)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, Timer: timer, card: card, began: time.Now()}
	t.Cleanup(func() { b.no(timer.Close()) })
	timer.Spent = func(w Work, began, ended time.Time) {
		b.spent = append(b.spent, interval{w, b.ms(began), b.ms(ended)})
	}
	return b
}

func (b *bench) ms(t time.Time) float64 { return float64(t.Sub(b.began)) / 1e6 }

func (b *bench) no(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// queue has the GPU work for some time.
func (b *bench) queue(w Work, takes time.Duration) {
	b.Helper()
	b.no(b.begin(w))
	b.no(b.stream(w).(*gputest.Stream).Run(takes, func() error { return nil }))
	b.no(b.end(w))
}

// fetch is what the trainer does after what it has queued for a batch. The function that it returns waits for the
// result.
func (b *bench) fetch() func() {
	b.Helper()
	b.queued()
	done, err := b.device.Context.NewEvent()
	b.no(err)
	b.no(b.device.Compute.Record(done))
	return func() {
		b.Helper()
		b.no(done.Synchronize())
		b.no(b.computed())
		b.no(done.Close())
	}
}

// wait is both.
func (b *bench) wait() { b.Helper(); b.fetch()() }

// arrive is what the copier does.
func (b *bench) arrive() {
	b.Helper()
	b.no(b.device.Transfer.Synchronize())
	b.no(b.transferred())
}

func (b *bench) want(spent []interval, transfers Transfers) {
	b.Helper()
	if !reflect.DeepEqual(b.spent, spent) {
		b.Errorf("spent %v, want %v", b.spent, spent)
	}
	if got := b.Transfers(); got != transfers {
		b.Errorf("transfers %+v, want %+v", got, transfers)
	}
}

// TestTimer plays two steps of two micro-batches, 50 ms of training each, and updates of 10 ms. As the loop does, it
// queues a batch before it waits for the one before.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.queue(Transferring, 3*ms) // nothing can hide it
		b.arrive()
		settle := func() {}
		for micro := range 4 {
			b.queue(Training, 50*ms)
			settle()
			if micro == 2 {
				if train, optimize, done := b.takeWindow(); train != 102*ms || optimize != 10*ms || b.ms(done) != 115 {
					t.Errorf("train %v, optimizer %v, done after %v ms, want 102ms, 10ms and 115", train, optimize,
						b.ms(done))
				}
			}
			b.queue(Accumulating, ms)
			if micro%2 == 1 {
				b.queue(Optimizing, 10*ms)
			}
			settle = b.fetch()
		}
		settle()
		b.queue(Evaluating, 20*ms)
		b.wait()
		b.want([]interval{
			{Transferring, 0, 3},
			{Training, 3, 53}, {Accumulating, 53, 54}, {Training, 54, 104}, {Accumulating, 104, 105},
			{Optimizing, 105, 115}, {Training, 115, 165}, {Accumulating, 165, 166}, {Training, 166, 216},
			{Accumulating, 216, 217}, {Optimizing, 217, 227},
			{Evaluating, 227, 247},
		}, Transfers{})
		b.restart()
		if train, optimize, _ := b.takeWindow(); train != 0 || optimize != 0 {
			t.Errorf("after a restart: %v, %v", train, optimize)
		}
	})
}

// TestHidden: a copy is hidden as long as the GPU computes meanwhile, whichever is called first.
func TestHidden(t *testing.T) {
	for name, c := range map[string]struct {
		// The copy begins at 100 ms, after a step of 20 ms.
		copy, train time.Duration // how long they take
		late        time.Duration // training begins so long after the copy
		hidden      time.Duration
		copyLast    bool // the copier is called after the trainer
	}{
		"all of it":              {copy: 4 * ms, train: 50 * ms, hidden: 4 * ms},
		"training is shorter":    {copy: 40 * ms, train: 10 * ms, hidden: 10 * ms},
		"the copier looks later": {copy: 10 * ms, train: 10 * ms, hidden: 10 * ms, copyLast: true},
		"the GPU begins later":   {copy: 10 * ms, train: 50 * ms, late: 7 * ms, hidden: 3 * ms},
		"the GPU is idle":        {copy: 4 * ms, train: 50 * ms, late: 5 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.queue(Training, 20*ms)
				b.wait()
				time.Sleep(80 * ms)
				b.queue(Transferring, c.copy)
				time.Sleep(c.late)
				b.queue(Training, c.train)
				if c.copyLast || c.train < c.copy {
					b.wait()
					b.arrive()
				} else {
					b.arrive()
					b.wait()
				}
				b.queue(Training, 50*ms) // on the batch that was copied
				b.wait()
				if got, want := b.Transfers(), (Transfers{1, c.copy, c.hidden}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		})
	}
}

// TestHiddenAtTheStart: the part of a transfer before the first computation cannot overlap.
func TestHiddenAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.queue(Transferring, 10*ms)
		time.Sleep(7 * ms)
		b.queue(Training, 50*ms)
		b.arrive()
		b.wait()
		b.queue(Training, 50*ms) // on the batch that was copied
		b.wait()
		if got, want := b.Transfers(), (Transfers{1, 3 * ms, 3 * ms}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestAnchors: over a minute the timer takes one anchor after the other, and stays in step with the host's clock.
func TestAnchors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first, others := b.anchor.event, 0
		var want []interval
		for i := range 600 {
			at := float64(100 * i)
			b.queue(Transferring, ms)
			b.queue(Training, 70*ms)
			b.arrive()
			b.wait()
			time.Sleep(30 * ms)
			if want = append(
				want, interval{Transferring, at, at + 1}, interval{Training, at, at + 70},
			); b.anchor.event != first {
				others++
			}
		}
		b.want(want, Transfers{599, 599 * ms, 599 * ms}) // the last batch was not computed yet
		if others < 200 || others > 400 || time.Since(b.anchor.at) > anchorAge+200*ms {
			t.Errorf("%d of 600 steps on the second event, the anchor is %v old", others, time.Since(b.anchor.at))
		}
	})
}

// onGPU returns the GPU that the tests were given, or the fake one.
func onGPU(t testing.TB) Device {
	d := device(t)
	if !d.onGPU() {
		d, _ = fakeDevice(t)
	}
	var err error
	if d.Timer, err = NewTimer(d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Timer.Close() })
	return d
}

// TestModelIsTimed: a model, its optimizer and its copies are measured, and trial runs are forgotten.
func TestModelIsTimed(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, index := shaped(t, b, g.Rows, g.Steps)
	d := onGPU(t)
	timer := d.Timer
	m, err := NewModel(ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := newOptimizer(t, m, g.Optimizer, true)
	if _, err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	if train, _, _ := timer.takeWindow(); train != 0 || timer.Transfers() != (Transfers{}) {
		t.Errorf("trial runs count: %v, %+v", train, timer.Transfers())
	}
	var works []Work
	timer.Spent = func(w Work, began, ended time.Time) {
		if works = append(works, w); ended.Before(began) {
			t.Errorf("%s from %v to %v", w, began, ended)
		}
	}
	step := g.Steps[0]
	bucket := index[step.shape()]
	f := &feed{
		batches: append(steps(2, 2), pipeline.Batch{Eval: true, Last: true, Bucket: bucket}),
		before: func(p *pipeline.Batch) {
			p.Bucket = bucket
			g.fill(t, step, &layouts[bucket], input(t, m))
			load(t, m, bucket)
		},
	}
	seen := new(record)
	l := &Loop{
		Model: m, Optimizers: Optimizers{o}, Feed: f, Observer: seen,
		Policy: Policy{Schedules: []schedule.Schedule{{Name: "constant", BaseLR: 1e-3}}, MaxSkipped: 1},
	}
	began := time.Now()
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wall := time.Since(began)
	want := []Work{
		Transferring, Training, Accumulating, Transferring, Training, Accumulating, Optimizing,
		Transferring, Training, Accumulating, Transferring, Training, Accumulating, Optimizing,
		Transferring, Evaluating,
	}
	if !reflect.DeepEqual(works, want) {
		t.Errorf("work of %v, want %v", works, want)
	}
	var onGPU time.Duration // the work of a window may begin before the window does, since it is queued ahead
	for i, w := range seen.windows {
		if onGPU += w.GPUTrain + w.GPUOptimize; w.GPUTrain <= 0 || w.GPUOptimize <= 0 {
			t.Errorf("window %d: %v and %v on the GPU", i, w.GPUTrain, w.GPUOptimize)
		}
	}
	if onGPU > wall {
		t.Errorf("%v of %v on the GPU", onGPU, wall)
	}
	if n := timer.Transfers(); n.Batches != 4 || n.Time <= 0 || n.Hidden > n.Time {
		t.Errorf("%+v of the four transfers after the first batch", n)
	}
}

// TestTimerFailures is in virtual time, so that the card goes after the last event is recorded, not before it.
func TestTimerFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, card := fakeDevice(t)
		failed := errors.New("the card is gone")
		timer, err := NewTimer(d)
		if err != nil {
			t.Fatal(err)
		}
		defer timer.Close()
		card.Fail(gputest.Run, 1, failed)
		if err := errors.Join(
			timer.begin(Training), d.Compute.(*gputest.Stream).Run(ms, func() error { return nil }),
			timer.end(Training),
		); err != nil {
			t.Fatal(err)
		}
		d.Compute.Synchronize()
		timer.queued()
		if err := timer.computed(); !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
		if _, err := NewTimer(d); !errors.Is(err, failed) {
			t.Errorf("a timer on a lost card: %v", err)
		}
		var none *Timer
		if err := errors.Join(
			none.begin(Training), none.end(Training), none.computed(), none.transferred(),
		); err != nil {
			t.Error(err)
		}
		if none.Transfers() != (Transfers{}) {
			t.Error("no timer has measured something")
		}
	})
}

// BenchmarkTimer is what it costs to measure a step: µs/step on the trainer's thread, µs/transfer on the copier's.
func BenchmarkTimer(b *testing.B) {
	d := onGPU(b)
	var step, transfer time.Duration
	timed := func(sum *time.Duration, calls ...func() error) {
		began := time.Now()
		for _, call := range calls {
			if err := call(); err != nil {
				b.Fatal(err)
			}
		}
		*sum += time.Since(began)
	}
	for b.Loop() {
		for _, w := range []Work{Transferring, Training, Optimizing} {
			sum, read := &step, d.Timer.computed
			if w == Transferring {
				sum, read = &transfer, d.Timer.transferred
			}
			timed(sum, func() error { return d.Timer.begin(w) }, func() error { return d.Timer.end(w) })
			if err := d.Timer.stream(w).Synchronize(); err != nil {
				b.Fatal(err)
			}
			d.Timer.queued()
			timed(sum, read)
		}
	}
	b.ReportMetric(float64(step.Nanoseconds())/1e3/float64(b.N), "µs/step")
	b.ReportMetric(float64(transfer.Nanoseconds())/1e3/float64(b.N), "µs/transfer")
}
