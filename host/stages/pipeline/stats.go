package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/base/stat"
)

// Phase is the cost of one phase, summed over the batches that reached the trainer. Phases of different batches
// overlap, so the sums may exceed the wall time.
type Phase struct {
	Name  string
	Busy  time.Duration // working
	Queue time.Duration // batches waiting for their turn in it
	// Parallel is the number of batches that a stage was seen to work on at a time: at least three batches, and one in
	// twenty, were the last of so many. The host cannot know what a plugin could do.
	Parallel int
}

// Stats are the pipeline's figures about its own speed.
type Stats struct {
	Batches int
	Wait    time.Duration // the trainer's time in Acquire, without the first call
	Startup time.Duration // the first call: the pipeline fills
	Exposed time.Duration // the part of Wait during the copy of the batch that the trainer waited for
	Phases  []Phase       // decode, the stages, transfer
	Rebuilt int           // attempts that were repeated because a process was lost or a slot was damaged
	// Times are the working times of Phases, a batch each, in ms. Only Figures fills them in.
	Times []stat.Sample
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
	s       Stats      // without Rebuilt
	last    time.Duration
	lanes   [][]lane // by phase
}

// lane is a place in a stage: in each, one batch is worked on at a time.
type lane struct {
	busy    time.Time // until then
	batches int
}

// worked gives a batch, which a stage worked on until a moment, the first lane that was free. The answer of a plugin
// takes a moment, so the end of the batch before may seem to be later than the begin of this one.
func (s *stats) worked(phase int, ended time.Time, busy time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := ended.Add(-busy + busy/4)
	for i := range s.lanes[phase] {
		if l := &s.lanes[phase][i]; !l.busy.After(began) {
			l.busy, l.batches = ended, l.batches+1
			return
		}
	}
	s.lanes[phase] = append(s.lanes[phase], lane{ended, 1})
}

// parallel counts the lanes of a phase that are no accident.
func (s *stats) parallel(phase int) (n int) {
	all := 0
	for _, l := range s.lanes[phase] {
		all += l.batches
	}
	for _, l := range s.lanes[phase] {
		if l.batches >= 3 && 20*l.batches >= all {
			n++
		}
	}
	return max(1, n)
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
	s.s.Phases, s.s.Times = make([]Phase, len(phases)), make([]stat.Sample, len(phases))
	s.lanes = make([][]lane, len(phases))
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
		if c != (cost{}) { // an augmentation does not work on a batch of an evaluation
			s.s.Times[i].Add(float64(c.busy) / float64(time.Millisecond))
		}
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

// Stats returns the figures so far, without Times.
func (p *Pipeline) Stats() Stats {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	out := p.stats.s
	out.Phases, out.Times = slices.Clone(out.Phases), nil
	for i := range out.Phases {
		out.Phases[i].Parallel = p.stats.parallel(i)
	}
	out.Rebuilt = int(p.stats.rebuilt.Load())
	return out
}

// Figures returns Stats with Times, which are some 20 KB for each phase.
func (p *Pipeline) Figures() Stats {
	out := p.Stats()
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	out.Times = slices.Clone(p.stats.s.Times)
	return out
}
