package pipeline

import (
	"context"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/adapt"
)

// uneven are stages whose time varies five-fold, from 10 to 50 ms, in different ways. Their mean is in the name.
var uneven = []struct {
	name string
	mean time.Duration
	of   func(i int, rng *rand.Rand) time.Duration
}{
	{"uniform", 30 * time.Millisecond, func(_ int, rng *rand.Rand) time.Duration {
		return 10*time.Millisecond + time.Duration(rng.Int64N(int64(40*time.Millisecond)))
	}},
	{"one of five", 18 * time.Millisecond, func(_ int, rng *rand.Rand) time.Duration {
		if rng.IntN(5) == 0 {
			return 50 * time.Millisecond
		}
		return 10 * time.Millisecond
	}},
	{"twenty in a row of a hundred", 18 * time.Millisecond, func(i int, _ *rand.Rand) time.Duration {
		if i/20%5 == 0 {
			return 50 * time.Millisecond
		}
		return 10 * time.Millisecond
	}},
}

// unevenRun trains on 3,000 batches, each for a time, with a stage whose time varies. slots is the number of ring
// slots, 0 for up to 50 that are adapted. It returns the share of time that the trainer waited, the largest depth and
// the last one.
func unevenRun(
	t *testing.T, slots int, trains time.Duration, of func(int, *rand.Rand) time.Duration,
) (stall float64, largest, last int) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3000
		rng, done := rand.New(rand.NewPCG(1, 2)), 0
		cfg := Config{
			Source: &plan{n: n}, Decoder: takes(time.Millisecond), Device: device(instant),
			Stages: []Step{{Name: "uneven", Stage: newStage(func(*Batch) ([]Rejected, error) {
				done++
				time.Sleep(of(done-1, rng))
				return nil, nil
			})}},
			RingSlots: slots, DeviceSlots: 3, Workers: 1, // so the stage gets the batches in their order
		}
		if slots == 0 {
			depth := adapt.Depth{Now: 2, Min: 2, Max: 50}
			cfg.RingSlots = depth.Max
			cfg.Adapt = &Adapt{Slots: 2, Workers: 1, Decide: func(p *Pipeline, _ *Batch, m adapt.Measured, _ []Phase) {
				depth.Next(m)
				p.Resize(depth.Now, 1)
				largest, last = max(largest, depth.Now), depth.Now
			}}
		}
		p, seen, err := drive(t, cfg, func(*DeviceSlot) { time.Sleep(trains) })
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, n)
		wait := p.Stats().Wait.Seconds()
		stall = wait / (wait + n*trains.Seconds())
	})
	return stall, largest, last
}

// TestAdaptedDepthHalvesTheStall: with a stage whose time varies five-fold, the trainer waits at most half as long as
// with two ring slots, as far as the pipeline is as fast as the trainer at all.
func TestAdaptedDepthHalvesTheStall(t *testing.T) {
	for _, tt := range uneven {
		for _, percent := range []time.Duration{105, 110, 130} {
			trains := tt.mean * percent / 100
			two, _, _ := unevenRun(t, 2, trains, tt.of)
			fifty, _, _ := unevenRun(t, 50, trains, tt.of)
			adapted, largest, _ := unevenRun(t, 0, trains, tt.of)
			t.Logf("%s, training takes %d %%: stall %.2f %% with 2 slots, %.2f %% with 50, %.2f %% adapted up to %d",
				tt.name, percent, 100*two, 100*fifty, 100*adapted, largest)
			if two > 0.001 && adapted > two/2 {
				t.Errorf("%s, %d %%: a stall of %.4f, more than half of %.4f", tt.name, percent, adapted, two)
			}
		}
	}
}

// TestAdaptedDepthStaysSmall: a pipeline that is much faster than the trainer, or that does not vary, needs no memory.
func TestAdaptedDepthStaysSmall(t *testing.T) {
	for _, tt := range uneven {
		if stall, largest, _ := unevenRun(t, 0, 5*tt.mean, tt.of); stall > 0.001 || largest > 2 {
			t.Errorf("%s: %d slots, stall %.4f", tt.name, largest, stall)
		}
	}
	steady := func(int, *rand.Rand) time.Duration { return 20 * time.Millisecond }
	for _, trains := range []time.Duration{19, 21, 40} {
		if _, largest, _ := unevenRun(t, 0, trains*time.Millisecond, steady); largest > 4 {
			t.Errorf("a steady stage of 20 ms, training of %d ms: %d slots", trains, largest)
		}
	}
}

// TestAdaptedDepthShrinks: when the time of a stage varies no more, the depth goes back.
func TestAdaptedDepthShrinks(t *testing.T) {
	_, largest, last := unevenRun(t, 0, 20*time.Millisecond, func(i int, rng *rand.Rand) time.Duration {
		if i < 600 {
			return uneven[1].of(i, rng)
		}
		return 5 * time.Millisecond
	})
	if largest < 8 || last > 3 {
		t.Errorf("the depth was %d, and %d at the end", largest, last)
	}
}

// TestAdaptedDepthFindsParallelStages: a long stage that works on many batches at a time needs as many slots, although
// its time does not vary.
func TestAdaptedDepthFindsParallelStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		depth := adapt.Depth{Now: 2, Min: 2, Max: 50}
		cfg := Config{
			Source: &plan{n: 2000}, Decoder: takes(time.Millisecond), Device: device(instant),
			Stages:    []Step{{Name: "long", Stage: parallel(100 * time.Millisecond)}},
			RingSlots: 50, DeviceSlots: 3, Workers: 2,
		}
		cfg.Adapt = &Adapt{Slots: 2, Workers: 1, Decide: func(p *Pipeline, _ *Batch, m adapt.Measured, _ []Phase) {
			depth.Next(m)
			p.Resize(depth.Now, 1)
		}}
		p, seen, err := drive(t, cfg, func(*DeviceSlot) { time.Sleep(10 * time.Millisecond) })
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, 2000)
		if wait := p.Stats().Wait; wait > 3*time.Second || depth.Now < 11 || depth.Now > 16 {
			t.Errorf("the trainer waited %v of 20 s, and the depth is %d, want 11 to 16", wait, depth.Now)
		}
	})
}

// parallel is a stage that works on any number of batches at a time.
type parallel time.Duration

func (d parallel) Process(context.Context, *Batch) ([]Rejected, time.Duration, error) {
	time.Sleep(time.Duration(d))
	return nil, time.Duration(d), nil
}

// TestResizeOpensAndShuts: no slot is used outside of Open and Shut, whatever the sizes are in between, and without
// memory the pipeline goes on with the slots that it has.
func TestResizeOpensAndShuts(t *testing.T) {
	const most, room = 12, 9
	var open [most]atomic.Bool
	var used [most]atomic.Int64
	var workers, shut atomic.Int64
	rng := rand.New(rand.NewPCG(3, 4))
	cfg := Config{
		Source: &plan{n: 5000}, Device: device(instant), RingSlots: most, DeviceSlots: 3, Workers: 4,
		Decoder: decoder(func(b *Batch) ([]Rejected, error) {
			if workers.Add(1) > 4 {
				t.Error("too many workers")
			}
			defer workers.Add(-1)
			if !open[b.Slot].Load() {
				t.Errorf("slot %d is used while it is shut", b.Slot)
			}
			used[b.Slot].Add(1)
			return nil, nil
		}),
	}
	cfg.Adapt = &Adapt{
		Slots: 1, Workers: 1,
		Open: func(slot int) bool {
			if slot < room && open[slot].Swap(true) {
				t.Errorf("slot %d was open", slot)
			}
			return slot < room
		},
		Shut: func(slot int) {
			shut.Add(1)
			if !open[slot].Swap(false) {
				t.Errorf("slot %d was not open", slot)
			}
		},
		Decide: func(p *Pipeline, _ *Batch, _ adapt.Measured, _ []Phase) { p.Resize(rng.IntN(most+3), rng.IntN(6)) },
	}
	_, seen, err := drive(t, cfg, nil)
	if err != io.EOF {
		t.Fatal(err)
	}
	checkOrder(t, seen, 5000)
	if shut.Load() == 0 {
		t.Error("no slot was shut")
	}
	for slot := range used {
		if n := used[slot].Load(); (n > 0) != (slot < room) {
			t.Errorf("slot %d had %d batches; there is memory for %d", slot, n, room)
		}
	}
}

// TestCrew: workers above the limit get no more work, after at most one batch, until the limit rises.
func TestCrew(t *testing.T) {
	c := newCrew(3)
	c.set(3)
	for _, tt := range []struct{ limit, idle int }{{1, 1}, {3, 3}, {2, 2}, {0, 0}, {3, 3}} {
		c.set(tt.limit)
		for range 2 { // the first time, workers that are too many may come
			var all []int
			for len(c.idle) > 0 {
				all = append(all, <-c.idle)
			}
			for _, worker := range all {
				c.free(worker)
			}
		}
		if n := len(c.idle); n != tt.idle || len(c.off) != 3-n {
			t.Errorf("limit %d: %d workers are idle, and %d do not work", tt.limit, n, len(c.off))
		}
	}
}
