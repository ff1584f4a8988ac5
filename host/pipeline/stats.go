package pipeline

import (
	"sync"
	"sync/atomic"
	"time"
)

// Phase is what one step of the road cost, summed over the batches that reached the trainer. Phases of different
// batches overlap, so the sums may exceed the wall time.
type Phase struct {
	Name  string
	Busy  time.Duration // working
	Queue time.Duration // batches waiting for their turn in it
}

// Stats is what the pipeline knows about its own speed.
type Stats struct {
	Batches int
	Wait    time.Duration // the trainer's time in Acquire, without the first call
	Startup time.Duration // the first call: the pipeline fills
	Exposed time.Duration // the part of Wait in which the batch that was waited for was being copied
	Phases  []Phase       // decode, the stages, transfer
	Rebuilt int           // attempts that had to be repeated because a stage was lost or a slot damaged
}

// Bottleneck returns the phase that limits the pipeline: the one that batches queue for. Where hardly any queue, the ring
// is too short to keep the phases busy at the same time, and the longest phase is named.
func (s Stats) Bottleneck() string {
	var queued, longest Phase
	for _, p := range s.Phases {
		if p.Queue > queued.Queue {
			queued = p
		}
		if p.Busy > longest.Busy {
			longest = p
		}
	}
	// The way to a plugin and back counts as queueing, too: it is short, and says nothing.
	if 10*queued.Queue < longest.Busy {
		return longest.Name
	}
	return queued.Name
}

type stats struct {
	rebuilt atomic.Int64
	mu      sync.Mutex // guards what follows
	s       Stats
	last    time.Duration
}

// LastWait returns how long the last Acquire waited.
func (p *Pipeline) LastWait() time.Duration {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	return p.stats.last
}

func (p *Pipeline) phases() []string {
	names := []string{"decode"}
	for _, s := range p.cfg.Stages {
		names = append(names, s.Name)
	}
	return append(names, "transfer")
}

func (s *stats) init(phases []string) {
	s.s.Phases = make([]Phase, len(phases))
	for i, name := range phases {
		s.s.Phases[i].Name = name
	}
}

// acquired accounts for a batch that the trainer waited for.
func (s *stats) acquired(b *Batch, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range b.cost {
		s.s.Phases[i].Busy += c.busy
		s.s.Phases[i].Queue += c.queue
	}
	s.s.Batches++
	s.last = wait
	if s.s.Batches == 1 {
		s.s.Startup = wait
	} else {
		s.s.Wait += wait
		// A wait ends with the copy of its batch.
		s.s.Exposed += min(wait, b.cost[len(b.cost)-1].busy)
	}
}

// Stats returns the figures so far.
func (p *Pipeline) Stats() Stats {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	out := p.stats.s
	out.Phases = append([]Phase(nil), out.Phases...)
	out.Rebuilt = int(p.stats.rebuilt.Load())
	return out
}
