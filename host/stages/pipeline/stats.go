package pipeline

import (
	"sync"
	"sync/atomic"
	"time"
)

// Phase is the cost of one phase, summed over the batches that reached the trainer. Phases of different batches
// overlap, so the sums may exceed the wall time.
type Phase struct {
	Name  string
	Busy  time.Duration // working
	Queue time.Duration // batches waiting for their turn in it
}

// Stats are the pipeline's figures about its own speed.
type Stats struct {
	Batches int
	Wait    time.Duration // the trainer's time in Acquire, without the first call
	Startup time.Duration // the first call: the pipeline fills
	Exposed time.Duration // the part of Wait during the copy of the batch that the trainer waited for
	Phases  []Phase       // decode, the stages, transfer
	Rebuilt int           // attempts that were repeated because a process was lost or a slot was damaged
}

// Bottleneck returns the phase that limits the pipeline: the one that batches queue for. If hardly any batches queue,
// the ring is too short to keep the phases busy at the same time, and Bottleneck returns the longest phase.
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
	// The transfer of the call to the plugin and back also counts as queueing. It is short and not significant.
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

// acquired records that the trainer waited for a batch.
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
