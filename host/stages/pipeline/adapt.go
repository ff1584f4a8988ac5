package pipeline

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/adapt"
)

// Adapt is what changes the numbers of ring slots and decode workers of a pipeline during its run, by Resize.
type Adapt struct {
	// Slots and Workers are the numbers in the beginning; 0 means 1.
	Slots, Workers int
	// Open is called before a ring slot is used that was not, and Shut when it is not used any more. If Open returns
	// false, the pipeline goes on with the slots before it, so it must return true for slot 0. Calls for different
	// slots may be concurrent. Both may be nil.
	Open func(slot int) bool
	Shut func(slot int)
	// Decide is called with every 16th training batch that the trainer has acquired, on its goroutine. The times of
	// phases, as Stats has them, are means over the batches since the last call.
	Decide func(p *Pipeline, b *Batch, m adapt.Measured, phases []Phase)
}

// every is the number of batches between two calls of Adapt.Decide.
const every = 16

// begin returns the numbers of slots and workers in the beginning.
func (c *Config) begin() (slots, workers int) {
	if c.Adapt == nil {
		return c.RingSlots, c.Workers
	}
	return min(max(1, c.Adapt.Slots), c.RingSlots), min(max(1, c.Adapt.Workers), c.Workers)
}

// Resize changes the numbers of ring slots and decode workers that are used, from 1 to Config.RingSlots and
// Config.Workers. A slot or worker that is in use finishes its batch.
func (p *Pipeline) Resize(slots, workers int) {
	p.open.set(min(max(1, slots), p.cfg.RingSlots))
	p.workers.set(min(max(1, workers), p.cfg.Workers))
}

// Forget has the next calls of Adapt.Decide know nothing of the speed of the pipeline before. Decide may call it.
func (p *Pipeline) Forget() { p.meter.recent.Forget() }

// gate lets the ring slots below a limit pass.
type gate struct {
	limit atomic.Int64
	mu    sync.Mutex
	moved chan struct{} // closed and replaced when the limit changes; nil before
}

func (g *gate) set(n int) { g.change(func(int64) int64 { return int64(n) }) }

// lower is set, but the limit does not rise.
func (g *gate) lower(n int) { g.change(func(limit int64) int64 { return min(limit, int64(n)) }) }

func (g *gate) change(to func(int64) int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit.Store(to(g.limit.Load()))
	if g.moved != nil {
		close(g.moved)
	}
	g.moved = make(chan struct{})
}

// closed returns nil if a slot may pass, or else a channel that is closed when the limit changes.
func (g *gate) closed(slot int) <-chan struct{} {
	if int64(slot) < g.limit.Load() {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if int64(slot) < g.limit.Load() {
		return nil
	}
	return g.moved
}

// enter waits until a ring slot may be used, and opens and shuts it. It returns false if the run ends, or has no more
// batches.
func (p *Pipeline) enter(ctx context.Context, slot int, used *bool) bool {
	for {
		moved := p.open.closed(slot)
		switch a := p.cfg.Adapt; {
		case moved == nil && (*used || a == nil || a.Open == nil || a.Open(slot)):
			*used = true
			return true
		case moved == nil:
			p.open.lower(max(1, slot))
			continue
		case *used && a.Shut != nil:
			a.Shut(slot)
		}
		*used = false
		select {
		case <-moved:
		case <-p.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// crew is numbered workers, of which those below a limit work.
type crew struct {
	idle chan int // has room for all

	mu    sync.Mutex // guards the rest
	limit int
	off   []int // do not work
}

func newCrew(most int) *crew {
	c := &crew{idle: make(chan int, most)}
	for i := range most {
		c.off = append(c.off, i)
	}
	return c
}

// set changes the limit.
func (c *crew) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = n
	var off []int
	for _, worker := range c.off {
		if worker < n {
			c.idle <- worker
		} else {
			off = append(off, worker)
		}
	}
	c.off = off
}

// free makes a worker idle after its work. A worker that is too many may still get one batch before.
func (c *crew) free(worker int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if worker >= c.limit {
		c.off = append(c.off, worker)
		return
	}
	c.idle <- worker
}

// meter measures what Adapt.Decide gets.
type meter struct {
	// Only the copier's goroutine uses these.
	ready time.Time // when the last batch was READY, in the order of the plan
	freed time.Time // the end of the last wait for a device slot

	// Only the trainer's goroutine uses these.
	recent adapt.Recent
	taken  time.Time // when it acquired the last batch
	eval   bool      // that was one of the validation set
	before Stats     // at the last call of Decide
}

// measure records that a batch is READY, and those before it.
func (m *meter) measure(b *Batch) {
	if m == nil {
		return
	}
	at := latest(m.ready, b.built)
	b.apart, b.held = at.Sub(m.ready), m.ready.IsZero() || m.freed.After(m.ready)
	m.ready = at
}

// freeSlot waits for a free device slot. It returns nil if the run ends.
func (p *Pipeline) freeSlot(ctx context.Context) *DeviceSlot {
	waits := len(p.free) == 0
	select {
	case d := <-p.free:
		if waits && p.meter != nil {
			p.meter.freed = time.Now()
		}
		return d
	case <-ctx.Done():
		return nil
	}
}

// adapt records that the trainer called Acquire at a time and has got a batch now, and lets Config.Adapt decide.
func (p *Pipeline) adapt(b *Batch, called time.Time) {
	m := p.meter
	if m == nil {
		return
	}
	var own time.Duration
	if !m.taken.IsZero() && !m.eval && !b.Eval {
		own = called.Sub(m.taken)
	}
	m.taken, m.eval = time.Now(), b.Eval
	if b.Eval {
		return
	}
	var work time.Duration
	for _, c := range b.cost {
		work += c.busy
	}
	m.recent.Add(adapt.Batch{
		Train: own.Seconds(), Work: work.Seconds(), Apart: b.apart.Seconds(), Held: b.held,
	})
	if m.recent.Fresh() < every {
		return
	}
	now, queue := p.Stats(), time.Duration(0)
	phases, batches := slices.Clone(now.Phases), time.Duration(now.Batches-m.before.Batches)
	for i, was := range m.before.Phases {
		phases[i].Busy, phases[i].Queue = (phases[i].Busy-was.Busy)/batches, (phases[i].Queue-was.Queue)/batches
		queue += phases[i].Queue
	}
	m.before = now
	p.cfg.Adapt.Decide(p, b, m.recent.Measure(queue.Seconds()), phases)
}
