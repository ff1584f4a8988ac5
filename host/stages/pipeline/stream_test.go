package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// card is a Device like the host's: a fake GPU with one stream for copies and another for training. Ring slots are
// pinned memory. A copy takes 1 µs per byte. The length of each batch comes from size, and its content identifies the
// batch.
type card struct {
	*testing.T
	*gputest.Context
	transfer, compute *gputest.Stream
	ring              []*gputest.Memory
	slots             []*gputest.Memory
	size              func(index int) int // bytes of a batch, which is at the end of its slot
	bound             bool                // the copier's thread
	copies            int
}

const largest = 20_000 // bytes of a batch, whose copy takes 20 ms

// onCard runs f in a bubble of virtual time, on a thread that is bound to a new card, and requires that all resources
// of the card are released. Misuse of the card fails the test, above all a ring slot that changes during its copy, and
// memory that is freed while in use.
func onCard(t *testing.T, ring, slots int, f func(c *card)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
		c := &card{T: t, size: func(int) int { return largest }}
		c.Context = gputest.New(gputest.Config{Bandwidth: 1e6, Misuse: func(err error) { t.Error(err) }})
		c.no(c.Bind())
		var open []io.Closer
		for _, s := range []**gputest.Stream{&c.transfer, &c.compute} {
			made, err := c.NewStream()
			c.no(err)
			*s, open = made.(*gputest.Stream), append(open, made)
		}
		for range ring {
			m, err := c.AllocateHost(largest)
			c.no(err)
			c.ring, open = append(c.ring, m.(*gputest.Memory)), append(open, m)
		}
		for range slots {
			m, err := c.Allocate(largest)
			c.no(err)
			c.slots, open = append(c.slots, m.(*gputest.Memory)), append(open, m)
		}
		f(c)
		for _, x := range open {
			x.Close() // fails if the card was lost, but closes anyway
		}
		c.no(c.Context.Close())
	})
}

func (c *card) no(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// config drives n batches.
func (c *card) config(n int) Config {
	return Config{
		Source: &plan{n: n}, Decoder: decoder(c.decode), Device: c, RingSlots: len(c.ring), DeviceSlots: len(c.slots),
		Workers: len(c.ring),
	}
}

func (c *card) decode(b *Batch) ([]Rejected, error) {
	mem := c.ring[b.Slot].Bytes()
	for i := 0; i < len(mem); i += 8 {
		binary.LittleEndian.PutUint64(mem[i:], uint64(b.Index))
	}
	return nil, nil
}

// Copy implements Device.
func (c *card) Copy(dst int, b *Batch) error {
	if !c.bound {
		runtime.LockOSThread()
		c.no(c.Bind())
		c.bound = true
	}
	at := largest - c.size(b.Index)
	if err := c.transfer.Upload(c.slots[dst], at, c.ring[b.Slot].Bytes()[at:]); err != nil {
		return err
	}
	if err := c.transfer.Synchronize(); err != nil {
		return err
	}
	c.copies++
	return nil
}

// train makes the card work on a batch for a time. The slot must still hold the batch at the end.
func (c *card) train(d *DeviceSlot, takes time.Duration) {
	index := uint64(d.Batch.Index)
	c.compute.Run(takes, func() error {
		mem := c.slots[d.Index].Bytes()
		for _, at := range []int{largest - c.size(int(index)), largest - 8} {
			if got := binary.LittleEndian.Uint64(mem[at:]); got != index {
				c.Errorf("slot %d holds batch %d at %d, not %d", d.Index, got, at, index)
			}
		}
		return nil
	})
	c.compute.Synchronize() // an error here was also returned by the copy
}

// TestCopyBesideTraining: with two or more slots, copy and training take only the time of the longer one.
func TestCopyBesideTraining(t *testing.T) {
	const n, ms = 50, time.Millisecond
	for _, tt := range []struct {
		slots       int
		copy, train time.Duration
		want, stall time.Duration // stall without the first batch
	}{
		{1, 8, 10, n * 18, (n - 1) * 8},
		{2, 8, 10, 8 + n*10, 0},
		{3, 8, 10, 8 + n*10, 0},
		{1, 10, 8, n * 18, (n - 1) * 10},
		{2, 10, 8, n*10 + 8, (n - 1) * 2},
		{8, 10, 8, n*10 + 8, (n - 1) * 2},
	} {
		t.Run(fmt.Sprintf("%d slots, copy %d ms, train %d ms", tt.slots, tt.copy, tt.train), func(t *testing.T) {
			onCard(t, 4, tt.slots, func(c *card) {
				c.size = func(int) int { return int(tt.copy) * 1000 }
				began := time.Now()
				p, seen, err := drive(c.T, c.config(n), func(d *DeviceSlot) { c.train(d, tt.train*ms) })
				if err != io.EOF {
					c.Fatal(err)
				}
				checkOrder(c.T, seen, n)
				if got := time.Since(began); got != tt.want*ms {
					c.Errorf("%d batches took %v, want %v", n, got, tt.want*ms)
				}
				if got := p.Stats().Wait; got != tt.stall*ms {
					c.Errorf("the trainer waited %v, want %v", got, tt.stall*ms)
				}
			})
		})
	}
}

// TestSlotStates examines three slots during a run: F(ree), P(reparing), R(eady), T(raining).
func TestSlotStates(t *testing.T) {
	for _, tt := range []struct {
		name        string
		copy, train int                      // ms
		want        map[time.Duration]string // by time in ms
	}{
		{"training is slower", 4, 10, map[time.Duration]string{
			1: "PFF", 5: "TPF", 9: "TRP", 13: "TRR", 15: "PTR", 19: "RTR", 25: "RPT", 29: "RRT", 35: "TRP", 39: "TRR",
		}},
		{"copies are slower", 10, 4, map[time.Duration]string{
			1: "PFF", 11: "TPF", 15: "FPF", 21: "FTP", 25: "FFP", 31: "PFT", 35: "PFF", 41: "TPF",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onCard(t, 4, 3, func(c *card) {
				c.size = func(int) int { return tt.copy * 1000 }
				p, err := New(c.config(100))
				c.no(err)
				began, ended := time.Now(), make(chan struct{})
				ctx, cancel := context.WithCancel(c.T.Context())
				go func() { p.Run(ctx); close(ended) }()
				looked := make(chan struct{})
				go func() {
					defer close(looked)
					for at := time.Duration(1); at < 42; at += 2 {
						time.Sleep(at*time.Millisecond - time.Since(began))
						var got strings.Builder
						for i := range p.slots {
							got.WriteByte(p.slots[i].State().String()[0])
						}
						if want, ok := tt.want[at]; ok && got.String() != want {
							c.Errorf("after %d ms the slots are %s, want %s", at, &got, want)
						}
					}
					cancel()
				}()
				for {
					d, err := p.Acquire(ctx)
					if err != nil {
						break
					}
					c.train(d, time.Duration(tt.train)*time.Millisecond)
					p.Release(d)
				}
				<-looked
				<-ended
			})
		})
	}
}

// TestBackPressure: while the trainer is blocked, as many batches are copied as there are device slots, and as many
// more are prepared as there are ring slots. No slot is lost.
func TestBackPressure(t *testing.T) {
	const ring, n = 5, 40
	for slots := 2; slots <= 8; slots++ {
		onCard(t, ring, slots, func(c *card) {
			cfg := c.config(n)
			source := cfg.Source.(*plan)
			p, seen, err := drive(c.T, cfg, func(d *DeviceSlot) {
				if d.Batch.Index == 0 {
					time.Sleep(time.Hour)
					synctest.Wait() // for all other goroutines, also for the race detector
					if c.copies != slots || source.at != slots+ring {
						c.Errorf("%d slots: %d batches copied, %d taken from the plan", slots, c.copies, source.at)
					}
				}
				c.train(d, time.Millisecond)
			})
			if err != io.EOF {
				c.Fatal(err)
			}
			checkOrder(c.T, seen, n)
			for i := range p.slots {
				if s := p.slots[i].State(); s != Free {
					c.Errorf("%d slots: slot %d ends %s", slots, i, s)
				}
			}
		})
	}
}

// TestFailedCopyEndsTheRun: if the card is lost during a copy, the run ends with that error. No goroutine is left (the
// bubble checks this), and nothing of the card is in use.
func TestFailedCopyEndsTheRun(t *testing.T) {
	gone := errors.New("the card is gone")
	for _, nth := range []int{1, 2, 7} {
		for slots := 1; slots <= 3; slots++ {
			onCard(t, 4, slots, func(c *card) {
				c.Context.Fail(gputest.Upload, nth, gone)
				_, seen, err := drive(c.T, c.config(20), func(d *DeviceSlot) { c.train(d, 50*time.Millisecond) })
				if !errors.Is(err, gone) || !strings.HasPrefix(err.Error(), "copy to device slot ") {
					c.Errorf("copy %d fails with %d slots: %v", nth, slots, err)
				}
				if len(seen) > nth-1 {
					c.Errorf("copy %d fails with %d slots: %d batches were trained on", nth, slots, len(seen))
				}
			})
		}
	}
}

// TestCancelWaitsForTheCopy: when Run returns, no copy is in progress, so memory can be freed.
func TestCancelWaitsForTheCopy(t *testing.T) {
	onCard(t, 4, 2, func(c *card) {
		p, err := New(c.config(20))
		c.no(err)
		ctx, cancel := context.WithTimeout(c.T.Context(), largest/2*time.Microsecond)
		defer cancel()
		began := time.Now()
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("Run returned %v", err)
		}
		// Batches that are finished when ctx ends may still be copied if slots are free.
		if got := time.Since(began); c.copies == 0 || got != time.Duration(c.copies)*largest*time.Microsecond {
			c.Errorf("Run returned after %v and %d copies, in the middle of one", got, c.copies)
		}
	})
}

// TestOrderSurvivesSlowCopies: copies take 8 µs to 20 ms, in random order.
func TestOrderSurvivesSlowCopies(t *testing.T) {
	for seed := range nightly.Of[uint64](4, 80) {
		rng := rand.New(rand.NewPCG(seed, 0))
		onCard(t, 1+rng.IntN(6), 1+rng.IntN(8), func(c *card) {
			c.size = func(index int) int { return 8 * (1 + rand.New(rand.NewPCG(seed, uint64(index))).IntN(largest/8)) }
			_, seen, err := drive(c.T, c.config(100),
				func(d *DeviceSlot) { c.train(d, time.Duration(rng.Int64N(int64(20*time.Millisecond)))) })
			if err != io.EOF {
				c.Fatal(err)
			}
			checkOrder(c.T, seen, 100)
		})
	}
}
