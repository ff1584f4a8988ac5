package batch

import (
	"context"
	"io"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// InputMode is the input mode: how batches come to the trainer. All modes but the first are for benchmarks.
type InputMode int

const (
	// Overlapped prepares batches during training.
	Overlapped InputMode = iota
	// NoCheckpoint is Overlapped for measurements. This mode and those below save no checkpoint at the end.
	NoCheckpoint
	// Synchronous starts a batch after training on the previous one, like a program without a pipeline.
	Synchronous
	// ComputeOnly trains on the first two batches alternately: it measures the speed of the device without input.
	ComputeOnly
)

// Input is an input mode, and what slows a run down.
type Input struct {
	InputMode
	Delays Delays
}

// Delays are called for each batch, in the time that counts as its decoding, transfer or training. With them, tests of
// what measures speed make a run slow where they want. Each may be nil. Several goroutines may call Decode at a time.
type Delays struct{ Decode, Transfer, Train func() }

// WarmSteps is the number of first steps of a measurement whose time does not count: the pipeline fills, and CUDA
// graphs are recorded.
const WarmSteps = 9

// Measures reports whether the mode is for measurements.
func (m InputMode) Measures() bool { return m != Overlapped }

// Warm returns WarmSteps, or 0 if the mode is for training.
func (m InputMode) Warm() int64 {
	if m.Measures() {
		return WarmSteps
	}
	return 0
}

// computeOnlyFeed delivers two batches alternately without end: the trainer may hold two.
type computeOnlyFeed struct {
	feed  pipeline.Feed
	steps int64
	slots [2]*pipeline.DeviceSlot
	step  int64
}

func (f *computeOnlyFeed) Ready() bool { return f.step >= 1 && f.step < f.steps }

func (f *computeOnlyFeed) Acquire(ctx context.Context) (*pipeline.DeviceSlot, error) {
	if f.step == f.steps {
		return nil, io.EOF
	}
	for i := range f.slots { // both before the first step, so that no later step waits
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

func (f *computeOnlyFeed) Release(*pipeline.DeviceSlot) {}
func (f *computeOnlyFeed) LastWait() time.Duration      { return 0 }

// beginning has the first batches of a source.
type beginning struct {
	pipeline.Source
	left int
}

// Next implements pipeline.Source.
func (f *beginning) Next(b *pipeline.Batch) bool {
	f.left--
	return f.left >= 0 && f.Source.Next(b)
}

// gate makes the source wait until the trainer has released the previous batch.
type gate struct {
	pipeline.Source
	pipeline.Feed
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

// Release implements pipeline.Feed.
func (g *gate) Release(d *pipeline.DeviceSlot) {
	g.Feed.Release(d)
	g.free <- struct{}{}
}

// close unblocks a pipeline that waits for the gate.
func (g *gate) close() { close(g.closed) }

// adapter adapts a pipeline to an InputMode. The zero value changes nothing.
type adapter struct {
	mode  InputMode
	steps int64 // of the run
	gate  *gate
}

// configure sets the pipeline's source, and other settings of the mode.
func (f *adapter) configure(cfg *pipeline.Config, s pipeline.Source) {
	cfg.Source = s
	if f.mode == ComputeOnly || f.mode == Synchronous {
		cfg.Adapt = nil
	}
	if f.mode == ComputeOnly {
		cfg.Source = &beginning{Source: s, left: len(computeOnlyFeed{}.slots)} // nothing else runs at the same time
	}
	if f.mode == Synchronous {
		f.gate = newGate(s)
		cfg.Source = f.gate
		cfg.RingSlots, cfg.DeviceSlots, cfg.Workers, cfg.Prefetch = 1, 1, 1, 1
	}
}

// wrap returns the feed of the trainer.
func (f *adapter) wrap(p *pipeline.Pipeline) pipeline.Feed {
	switch f.mode {
	case Synchronous:
		f.gate.Feed = p
		return f.gate
	case ComputeOnly:
		return &computeOnlyFeed{feed: p, steps: f.steps}
	}
	return p
}

// close unblocks the pipeline.
func (f *adapter) close() {
	if f.gate != nil {
		f.gate.close()
	}
}
