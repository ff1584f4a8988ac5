package pipeline

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// plan is a Source of n batches of four rows.
type plan struct{ n, at int }

func (s *plan) Next(b *Batch) bool {
	if s.at == s.n {
		return false
	}
	b.Index, b.Step = s.at, int64(s.at)
	b.Rows = append(b.Rows[:0], 0, 1, 2, 3)
	s.at++
	return true
}

// decoder takes a given time and may reject rows.
type decoder func(b *Batch) ([]Rejected, error)

func (f decoder) Decode(_ context.Context, _ int, b *Batch) ([]Rejected, error) { return f(b) }

func takes(d time.Duration) decoder {
	return func(*Batch) ([]Rejected, error) { time.Sleep(d); return nil, nil }
}

// stage serves one batch at a time, like one plugin process with one core. A channel controls its turn, not a mutex:
// virtual time does not advance while a goroutine waits for a mutex.
type stage struct {
	turn chan struct{}
	f    func(b *Batch) ([]Rejected, error)
}

func newStage(f func(b *Batch) ([]Rejected, error)) *stage {
	return &stage{turn: make(chan struct{}, 1), f: f}
}

func (s *stage) Process(_ context.Context, b *Batch) ([]Rejected, time.Duration, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	began := time.Now()
	r, err := s.f(b)
	return r, time.Since(began), err
}

func stageTakes(d time.Duration) *stage {
	return newStage(func(*Batch) ([]Rejected, error) { time.Sleep(d); return nil, nil })
}

type device func(dst int, b *Batch) error

func (f device) Copy(dst int, b *Batch) error { return f(dst, b) }

func instant(int, *Batch) error { return nil }

// drive trains on every batch and returns the batches in order, and the error that ended the run.
func drive(t *testing.T, cfg Config, train func(d *DeviceSlot)) (*Pipeline, []int, error) {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(t.Context()) })
	defer wg.Wait()
	var seen []int
	for {
		d, err := p.Acquire(t.Context())
		if err != nil {
			return p, seen, err
		}
		if d.State() != Training {
			t.Errorf("acquired slot is %s", d.State())
		}
		if train != nil {
			train(d)
		}
		seen = append(seen, d.Batch.Index)
		p.Release(d)
	}
}

func checkOrder(t *testing.T, seen []int, n int) {
	t.Helper()
	if len(seen) != n {
		t.Fatalf("%d batches arrived, want %d", len(seen), n)
	}
	for i, got := range seen {
		if got != i {
			t.Fatalf("place %d: batch %d", i, got)
		}
	}
}

func TestThroughputIsThatOfTheSlowestStage(t *testing.T) {
	for _, times := range [][3]time.Duration{{7, 3, 10}, {10, 3, 7}, {3, 10, 7}} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 200
				ms := time.Millisecond
				began := time.Now()
				p, seen, err := drive(t, Config{
					Source: &plan{n: n}, Decoder: takes(times[0] * ms), Device: device(instant),
					Stages:    []Step{{Name: "features", Stage: stageTakes(times[1] * ms)}},
					RingSlots: 6, DeviceSlots: 3, Workers: 1,
				}, func(*DeviceSlot) { time.Sleep(times[2] * ms) })
				if err != io.EOF {
					t.Fatal(err)
				}
				checkOrder(t, seen, n)
				// The first batch passes all three stages; each later one takes the time of the slowest.
				slowest := max(times[0], times[1], times[2])
				want := (times[0] + times[1] + times[2] + (n-1)*slowest) * ms
				if got := time.Since(began); got != want {
					t.Errorf("%d batches took %v, want %v (the sum of the stages would be %v)", n, got, want,
						n*(times[0]+times[1]+times[2])*ms)
				}
				stats := p.Stats()
				if slowest == times[2] {
					if stats.Wait != 0 {
						t.Errorf("the trainer waited %v for a pipeline that is faster", stats.Wait)
					}
					return
				}
				want = (n - 1) * (slowest - times[2]) * ms
				if stats.Wait != want {
					t.Errorf("the trainer waited %v, want %v", stats.Wait, want)
				}
				names := map[time.Duration]string{times[0]: "decode", times[1]: "features"}
				if got := stats.Bottleneck(); got != names[slowest] {
					t.Errorf("bottleneck %q, want %q", got, names[slowest])
				}
			})
		})
	}
}

// stallOf runs 1,000 batches with copies of 0-20 ms and training of 12 ms, with a ring that is always full.
func stallOf(t *testing.T, slots int) time.Duration {
	var stall time.Duration
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		p, seen, err := drive(t, Config{
			Source: &plan{n: 1000}, Decoder: takes(0), RingSlots: 8, DeviceSlots: slots, Workers: 4,
			Device: device(func(int, *Batch) error {
				time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
				return nil
			}),
		}, func(*DeviceSlot) { time.Sleep(12 * time.Millisecond) })
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, 1000)
		stall = p.Stats().Wait
	})
	return stall
}

func TestThirdSlotAbsorbsJitter(t *testing.T) {
	one, two, three := stallOf(t, 1), stallOf(t, 2), stallOf(t, 3)
	t.Logf("stall of 1,000 batches: 1 slot %v, 2 slots %v, 3 slots %v (%.3f of two)", one, two, three,
		float64(three)/float64(two))
	if float64(three) > 0.7*float64(two) {
		t.Errorf("three slots stall %v, more than 0.7 of the %v of two", three, two)
	}
	if two >= one {
		t.Errorf("two slots stall %v, one %v", two, one)
	}
}

func TestSlowCopyIsTheBottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, err := drive(t, Config{
			Source: &plan{n: 100}, Decoder: takes(9 * time.Millisecond), RingSlots: 6, DeviceSlots: 3, Workers: 4,
			Device: device(func(int, *Batch) error { time.Sleep(8 * time.Millisecond); return nil }),
		}, func(*DeviceSlot) { time.Sleep(4 * time.Millisecond) })
		if got := p.Stats().Bottleneck(); err != io.EOF || got != "transfer" {
			t.Errorf("bottleneck %q, error %v", got, err)
		}
	})
}

// TestShortRing: two slots cannot queue for a stage that processes both at a time.
func TestShortRing(t *testing.T) {
	s := Stats{Phases: []Phase{
		{Name: "decode", Busy: 10}, {Name: "features", Busy: 30, Queue: 9}, {Name: "molasses", Busy: 900, Queue: 4},
		{Name: "transfer", Busy: 1},
	}}
	if got := s.Bottleneck(); got != "molasses" {
		t.Errorf("bottleneck %q", got)
	}
	if got := (Stats{}).Bottleneck(); got != "" {
		t.Errorf("bottleneck of nothing: %q", got)
	}
}

func TestOrderSurvivesJitter(t *testing.T) {
	for seed := range nightly.Of[uint64](6, 200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex
			nap := func(*Batch) ([]Rejected, error) {
				mu.Lock()
				d := time.Duration(rng.Int64N(int64(9 * time.Millisecond)))
				mu.Unlock()
				time.Sleep(d)
				return nil, nil
			}
			_, seen, err := drive(t, Config{
				Source: &plan{n: 300}, Decoder: decoder(nap), Device: device(instant),
				Stages:    []Step{{Name: "a", Stage: newStage(nap)}, {Name: "b", Stage: newStage(nap)}},
				RingSlots: 1 + rng.IntN(9), DeviceSlots: 1 + rng.IntN(4), Workers: 1 + rng.IntN(5),
			}, func(d *DeviceSlot) { nap(nil) })
			if err != io.EOF {
				t.Fatal(err)
			}
			checkOrder(t, seen, 300)
		})
	}
}

// TestStatsAtAnyTime: the figures can be read while the trainer acquires batches.
func TestStatsAtAnyTime(t *testing.T) {
	p, err := New(Config{
		Source: &plan{n: 300}, Decoder: takes(0), Device: device(instant),
		RingSlots: 4, DeviceSlots: 2, Workers: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(t.Context()) })
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				p.LastWait()
				p.Stats()
			}
		}
	})
	for {
		d, err := p.Acquire(t.Context())
		if err != nil {
			break
		}
		p.Release(d)
	}
	close(ended)
	wg.Wait()
	if n := p.Stats().Batches; n != 300 {
		t.Errorf("%d batches, want 300", n)
	}
}

// TestHeapSlots passes real data through slots in Go's heap, where the race detector sees every access.
func TestHeapSlots(t *testing.T) {
	const ring, slots, n = 5, 3, 500
	var host, dev [8][64]int
	p, seen, err := drive(t, Config{
		Source: &plan{n: n}, RingSlots: ring, DeviceSlots: slots, Workers: 3,
		Decoder: decoder(func(b *Batch) ([]Rejected, error) {
			for i := range host[b.Slot] {
				host[b.Slot][i] = b.Index
			}
			return nil, nil
		}),
		Stages: []Step{{Name: "double", Stage: newStage(func(b *Batch) ([]Rejected, error) {
			for i := range host[b.Slot] {
				host[b.Slot][i] *= 2
			}
			return nil, nil
		})}},
		Device: device(func(dst int, b *Batch) error { dev[dst] = host[b.Slot]; return nil }),
	}, func(d *DeviceSlot) {
		for _, v := range dev[d.Index] {
			if v != 2*d.Batch.Index {
				t.Errorf("batch %d holds %d", d.Batch.Index, v)
				return
			}
		}
	})
	if err != io.EOF {
		t.Fatal(err)
	}
	checkOrder(t, seen, n)
	if got := p.Stats().Batches; got != n {
		t.Errorf("%d batches counted", got)
	}
}

func TestEvaluationSkipsAugmentation(t *testing.T) {
	calls := map[bool]int{}
	src := &evalEveryThird{plan{n: 30}}
	_, seen, err := drive(t, Config{
		Source: src, Decoder: takes(0), Device: device(instant), RingSlots: 4, DeviceSlots: 3,
		Stages: []Step{{Name: "noise", Augment: true, Stage: newStage(func(b *Batch) ([]Rejected, error) {
			calls[b.Eval]++
			return nil, nil
		})}},
	}, nil)
	if err != io.EOF {
		t.Fatal(err)
	}
	checkOrder(t, seen, 30)
	if calls[true] != 0 || calls[false] != 20 {
		t.Errorf("augmentation ran %v", calls)
	}
}

type evalEveryThird struct{ plan }

func (s *evalEveryThird) Next(b *Batch) bool {
	ok := s.plan.Next(b)
	b.Eval = b.Index%3 == 0
	return ok
}

// slowPlan returns one batch, and the next one when the test allows it.
type slowPlan struct {
	plan
	more chan struct{}
}

func (s *slowPlan) Next(b *Batch) bool {
	if s.at > 0 {
		<-s.more
	}
	return s.plan.Next(b)
}

// TestSourceTakesItsTime: a blocked source blocks nothing else.
func TestSourceTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		source := &slowPlan{plan{n: 2}, make(chan struct{})}
		p, err := New(
			Config{Source: source, Decoder: takes(time.Millisecond), Device: device(instant), RingSlots: 2, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		<-p.Warm()
		if n := p.Finished(); n != 1 {
			t.Errorf("%d batches are finished, want 1", n)
		}
		d, err := p.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.Release(d)
		close(source.more)
		if d, err = p.Acquire(ctx); err != nil {
			t.Fatal(err)
		}
		p.Release(d)
		cancel()
		<-done
	})
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	p, err := New(Config{
		Source: &plan{n: 1 << 30}, Decoder: takes(0), Device: device(instant), RingSlots: 4, DeviceSlots: 3,
		Stages: []Step{{Name: "features", Stage: stageTakes(0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	step := func() {
		d, err := p.Acquire(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		p.Release(d)
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(2000, step); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
	cancel()
	wg.Wait()
}

func TestNewRefusesHoles(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
}
