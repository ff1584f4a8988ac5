package batch

import (
	"context"
	"io"
	"time"

	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
)

// Feeding is how batches come to the trainer. All but the first are for measuring.
type Feeding int

const (
	// Overlapped prepares batches while others are trained on.
	Overlapped Feeding = iota
	// Unsaved is Overlapped in a run of which only the figures are wanted. Neither it nor what follows saves a checkpoint at its end.
	Unsaved
	// Lockstep begins a batch when the one before has been trained on, as a program without a pipeline does.
	Lockstep
	// Resident trains on the first two batches by turns: what the device can do when nothing feeds it.
	Resident
)

// residentFeed hands out two batches by turns for ever: the trainer may hold two.
type residentFeed struct {
	feed  train.Feed
	steps int64
	slots [2]*pipeline.DeviceSlot
	step  int64
}

func (f *residentFeed) Ready() bool { return f.step >= 1 && f.step < f.steps }

func (f *residentFeed) Acquire(ctx context.Context) (*pipeline.DeviceSlot, error) {
	if f.step == f.steps {
		return nil, io.EOF
	}
	for i := range f.slots { // both before the first step: nothing is to be waited for after it
		if f.slots[i] == nil {
			d, err := f.feed.Acquire(ctx)
			if err != nil {
				return nil, err
			}
			f.slots[i] = d
		}
	}
	d := f.slots[f.step%2]
	d.Batch.Step, d.Batch.Micro, d.Batch.Last = f.step, 0, true
	f.step++
	return d, ctx.Err()
}

func (f *residentFeed) Release(*pipeline.DeviceSlot) {}
func (f *residentFeed) LastWait() time.Duration      { return 0 }

// beginning is the first batches of a source.
type beginning struct {
	pipeline.Source
	left int
}

// Next implements pipeline.Source.
func (f *beginning) Next(b *pipeline.Batch) bool {
	f.left--
	return f.left >= 0 && f.Source.Next(b)
}

// gate lets the source give a batch when the trainer has released the one before.
type gate struct {
	pipeline.Source
	train.Feed
	free   chan struct{}
	closed chan struct{}
}

func newGate(s pipeline.Source) *gate {
	g := &gate{Source: s, free: make(chan struct{}, 1), closed: make(chan struct{})}
	g.free <- struct{}{}
	return g
}

// Next implements pipeline.Source.
func (g *gate) Next(b *pipeline.Batch) bool {
	select {
	case <-g.free:
		return g.Source.Next(b)
	case <-g.closed:
		return false
	}
}

// Release implements train.Feed.
func (g *gate) Release(d *pipeline.DeviceSlot) {
	g.Feed.Release(d)
	g.free <- struct{}{}
}

// close lets the pipeline end while it waits for the gate.
func (g *gate) close() { close(g.closed) }

// feeds puts a way of feeding around a pipeline. The zero value changes nothing.
type feeds struct {
	how   Feeding
	steps int64 // of the run
	gate  *gate
}

// before sets the pipeline's source, and what else must be.
func (f *feeds) before(cfg *pipeline.Config, s pipeline.Source) {
	cfg.Source = s
	if f.how == Resident {
		cfg.Source = &beginning{Source: s, left: len(residentFeed{}.slots)} // nothing else runs at the same time
	}
	if f.how == Lockstep {
		f.gate = newGate(s)
		cfg.Source = f.gate
		cfg.RingSlots, cfg.DeviceSlots, cfg.Workers, cfg.Prefetch = 1, 1, 1, 1
	}
}

// around returns what the trainer takes its batches from.
func (f *feeds) around(p *pipeline.Pipeline) train.Feed {
	switch f.how {
	case Lockstep:
		f.gate.Feed = p
		return f.gate
	case Resident:
		return &residentFeed{feed: p, steps: f.steps}
	}
	return p
}

// close lets the pipeline end.
func (f *feeds) close() {
	if f.gate != nil {
		f.gate.close()
	}
}
