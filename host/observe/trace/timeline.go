package trace

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Run describes what is traced.
type Run struct {
	// Workers is the number of decode workers, Stages the names of the pipeline's instances, DeviceSlots the number of
	// device slots.
	Workers     int
	Stages      []string
	DeviceSlots int
	// Bytes is the number of bytes that the transfer of a batch moves, by bucket.
	Bytes []int
	// GPU means that a GPU trains. Its work gets separate tracks.
	GPU bool
	// Steps is the number of calls of Step after which the file ends.
	Steps int
}

// Timeline holds the tracks of a run. It implements pipeline.Tracer. Nil means no tracing.
type Timeline struct {
	w        *Writer
	run      Run
	decode   []Track
	stages   []*lanes
	transfer Track
	slots    []slot
	trainer  Track
	compute  Track // of the GPU
	copies   Track
	over     atomic.Bool // the last step has been traced
	steps    int         // of the trainer's goroutine

	mu              sync.Mutex // guards the rest
	building, ready int        // ring slots
}

// slot is a device slot. The goroutine that moves it owns it.
type slot struct {
	track Track
	since time.Time // since when it has its state
}

// The groups of tracks.
const (
	pipelineGroup = "pipeline"
	slots         = "device slots"
	trainer       = "trainer"
	gpuGroup      = "GPU"
)

// NewTimeline creates the tracks of a run. It returns nil for a nil Writer.
func NewTimeline(w *Writer, run Run) *Timeline {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.start = time.Now() // earlier times are not in the picture
	w.mu.Unlock()
	t := &Timeline{w: w, run: run}
	for i := range run.Workers {
		t.decode = append(t.decode, w.Track(pipelineGroup, fmt.Sprintf("decode %d", i), i))
	}
	// Places are far apart, because a stage gets more tracks when it works on more batches at a time.
	for i, name := range run.Stages {
		t.stages = append(t.stages, &lanes{w: w, name: name, place: (1 + i) << 12})
	}
	for _, s := range t.stages {
		s.add()
	}
	t.transfer = w.Track(pipelineGroup, "transfer", (1+len(run.Stages))<<12)
	t.count(time.Now(), 0, 0)
	for i := range run.DeviceSlots {
		t.slots = append(t.slots, slot{w.Track(slots, fmt.Sprintf("slot %d", i), i), time.Now()})
	}
	t.trainer = w.Track(trainer, "trainer", 0)
	if run.GPU {
		t.compute, t.copies = w.Track(gpuGroup, "compute", 0), w.Track(gpuGroup, "transfer", 1)
	}
	return t
}

// batch returns the numbers of a batch, and more.
func batch(b *pipeline.Batch, more ...Arg) []Arg {
	args := append(make([]Arg, 0, 8), Arg{"epoch", b.Epoch}, Arg{"batch", b.Index}, Arg{"bucket", b.Bucket})
	if b.Eval {
		args = append(args, Arg{"evaluation", 1})
	} else {
		args = append(args, Arg{"step", int(b.Step) + 1})
	}
	return append(args, more...)
}

// Worked implements pipeline.Tracer.
func (t *Timeline) Worked(phase, place int, b *pipeline.Batch, began, ended time.Time, busy time.Duration) {
	if t.over.Load() {
		return
	}
	slot := Arg{"ring slot", b.Slot}
	switch {
	case phase == 0:
		t.w.Span(t.decode[place], "decode", began, ended, batch(b, slot))
	case phase <= len(t.stages):
		t.stages[phase-1].span(began, ended, busy, batch(b, slot))
	default:
		t.w.Span(t.transfer, "transfer", began, ended,
			batch(b, slot, Arg{"device slot", place}, Arg{"bytes", t.run.Bytes[b.Bucket]}))
	}
}

// Ring implements pipeline.Tracer.
func (t *Timeline) Ring(_ int, from, to pipeline.State) {
	if t.over.Load() {
		return
	}
	change := func(s pipeline.State) int {
		switch s {
		case from:
			return -1
		case to:
			return 1
		}
		return 0
	}
	t.count(time.Now(), change(pipeline.Preparing), change(pipeline.Ready))
}

// count changes the counters of the ring.
func (t *Timeline) count(at time.Time, building, ready int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.building += building
	t.ready += ready
	t.w.Count(pipelineGroup, "ring slots", at, []Arg{{"building", t.building}, {"ready", t.ready}})
}

// Moved implements pipeline.Tracer.
func (t *Timeline) Moved(d *pipeline.DeviceSlot, from, _ pipeline.State) {
	if t.over.Load() {
		return
	}
	s, now := &t.slots[d.Index], time.Now()
	var args []Arg
	if from != pipeline.Free {
		args = batch(&d.Batch)
	}
	t.w.Span(s.track, from.String(), s.since, now, args)
	s.since = now
}

// Trained records what the trainer's goroutine has done, and for which batch; nil for none.
func (t *Timeline) Trained(what string, b *pipeline.Batch, began, ended time.Time) {
	if t == nil || t.over.Load() {
		return
	}
	var args []Arg
	if b != nil {
		args = batch(b)
	}
	t.w.Span(t.trainer, what, began, ended, args)
}

// Computed records what the GPU has computed, on the host's clock.
func (t *Timeline) Computed(what string, began, ended time.Time) {
	if t != nil && !t.over.Load() {
		t.w.Span(t.compute, what, began, ended, nil)
	}
}

// Copied records a transfer to the GPU, on the host's clock.
func (t *Timeline) Copied(began, ended time.Time) {
	if t != nil && !t.over.Load() {
		t.w.Span(t.copies, "transfer", began, ended, nil)
	}
}

// Step records the end of an optimizer step, and flushes all events so far. After the last step it closes the Writer.
// The Writer's owner gets its error.
func (t *Timeline) Step() {
	if t == nil || t.over.Load() {
		return
	}
	if t.steps++; t.steps < t.run.Steps {
		t.w.Flush()
		return
	}
	t.over.Store(true)
	t.w.Close() // the owner's Close returns the error again
}
