package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a pipeline. Source, Decoder and Device are required. Counts of zero mean 1.
type Config struct {
	Source  Source
	Decoder Decoder
	Stages  []Step
	Device  Device
	// RingSlots is the maximum number of batches that are not yet copied, DeviceSlots of those that are.
	RingSlots, DeviceSlots int
	// Workers is the number of batches that are decoded at the same time.
	Workers int
	// Prefetch is the number of finished batches, from the first on, after which Warm is closed; at most RingSlots.
	Prefetch int
	// Measure, if set, returns numbers of a finished batch, which are summed over the batches of an optimizer step
	// before the first of them is copied: Batch.Totals. RingSlots must hold all batches of a step.
	Measure func(b *Batch) []float64
	// Reject is called for every rejected row, once for each batch that contains it. An error stops the run. Calls may
	// be concurrent. It may be nil.
	Reject func(b *Batch, rows []Rejected) error
	// Tracer gets all events. It may be nil.
	Tracer Tracer
	// Adapt, if set, changes RingSlots and Workers during the run, which then are the largest numbers.
	Adapt *Adapt
}

// Step is a stage with its place in the pipeline.
type Step struct {
	Name    string
	Augment bool // skipped by evaluation batches
	Stage   Stage
}

// State is the state of a device slot.
type State int32

// A device slot goes through these states in this order, again and again.
const (
	Free State = iota
	Preparing
	Ready
	Training
)

func (s State) String() string {
	return [...]string{"FREE", "PREPARING", "READY", "TRAINING"}[s]
}

// DeviceSlot is a batch on the device. The trainer owns it from Acquire to Release.
type DeviceSlot struct {
	Index  int
	Batch  Batch
	state  atomic.Int32
	glance glance
}

// State returns the current state of the slot.
func (d *DeviceSlot) State() State { return State(d.state.Load()) }

// move advances the state by one. An unexpected state is a bug of this package.
func (d *DeviceSlot) move(from, to State) {
	if !d.state.CompareAndSwap(int32(from), int32(to)) {
		panic(fmt.Sprintf("pipeline: device slot %d is %s, not %s", d.Index, d.State(), from))
	}
}

// Pipeline is a running pipeline. Only the trainer's goroutine may call Acquire and Release.
type Pipeline struct {
	cfg     Config
	slots   []DeviceSlot
	open    gate           // of the ring slots
	workers *crew          // decode workers
	built   []chan *Batch  // built[seq % RingSlots]: the finished batch of that number
	reuse   []chan verdict // by ring slot: the decision about its finished batch
	glances []glance       // by ring slot
	free    chan *DeviceSlot
	ready   chan *DeviceSlot
	warm    chan struct{} // closed by warmed
	ended   chan struct{} // closed when the source is exhausted; end is set before

	mu   sync.Mutex // guards the source, which may block, and next
	next uint64

	progress sync.Mutex // guards the following; never held for long
	end      uint64
	finished []bool // finished[seq % RingSlots]: that batch is finished, and an earlier one is not
	inFront  uint64 // the number of finished batches without a gap
	onDevice uint64 // batches copied

	failure error // set before ready is closed
	stats   stats
	meter   *meter // nil without Config.Adapt
}

// New checks the configuration. Nothing runs before Run.
func New(cfg Config) (*Pipeline, error) {
	if cfg.Source == nil || cfg.Decoder == nil || cfg.Device == nil {
		return nil, errors.New("pipeline: source, decoder and device are needed")
	}
	cfg.RingSlots, cfg.DeviceSlots, cfg.Workers = max(1, cfg.RingSlots), max(1, cfg.DeviceSlots), max(1, cfg.Workers)
	slots, workers := cfg.begin()
	cfg.Prefetch = min(max(1, cfg.Prefetch), slots)
	p := &Pipeline{
		cfg:      cfg,
		slots:    make([]DeviceSlot, cfg.DeviceSlots),
		workers:  newCrew(cfg.Workers),
		built:    make([]chan *Batch, cfg.RingSlots),
		reuse:    make([]chan verdict, cfg.RingSlots),
		glances:  make([]glance, cfg.RingSlots),
		finished: make([]bool, cfg.RingSlots),
		free:     make(chan *DeviceSlot, cfg.DeviceSlots),
		ready:    make(chan *DeviceSlot, cfg.DeviceSlots),
		warm:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	for i := range cfg.RingSlots {
		p.built[i] = make(chan *Batch, 1)
		p.reuse[i] = make(chan verdict, 1)
	}
	for i := range p.slots {
		p.slots[i].Index = i
		p.free <- &p.slots[i]
	}
	p.open.set(slots)
	p.workers.set(workers)
	p.stats.init(p.phases())
	if cfg.Adapt != nil {
		p.meter = &meter{before: p.Stats()}
	}
	return p, nil
}

// Run runs until the source is exhausted and all its batches are copied, until ctx ends, or until something fails. It
// returns when no goroutine of the pipeline is left. After a failure, Acquire returns the same error.
func (p *Pipeline) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for slot := range p.cfg.RingSlots {
		wg.Go(func() {
			if err := p.fill(ctx, slot); err != nil {
				stop(err)
			}
		})
	}
	if err := p.copyAll(ctx); err != nil {
		stop(err)
	}
	p.endWarm() // waiters must see how the run ended
	wg.Wait()
	p.failure = context.Cause(ctx)
	close(p.ready)
	return p.failure
}

// fill builds one batch after another in a ring slot.
func (p *Pipeline) fill(ctx context.Context, slot int) error {
	b, used := &Batch{}, false
	for p.enter(ctx, slot, &used) {
		// Get a worker first, then the number, so batches are decoded in the order of the plan.
		idle := time.Now()
		var worker int
		select {
		case worker = <-p.workers.idle:
		case <-ctx.Done():
			return nil
		}
		if !p.take(b) {
			p.workers.free(worker)
			return nil
		}
		b.Slot = slot
		p.ring(slot, Free, Preparing)
		done, err := p.deliver(ctx, worker, time.Since(idle), b)
		if !done || err != nil {
			return err
		}
	}
	return nil
}

// deliver builds a batch until the copier has accepted it. It returns false if the run ends first.
func (p *Pipeline) deliver(ctx context.Context, worker int, queue time.Duration, b *Batch) (bool, error) {
	for first := true; ; first = false {
		if err := p.build(ctx, worker, queue, b); err != nil {
			return false, err
		}
		b.built = time.Now()
		p.glances[b.Slot].set(Ready, len(p.cfg.Stages), b.shownStep())
		p.ring(b.Slot, Preparing, Ready)
		if first {
			p.finish(b.seq) // before the copy: a free slot may already hold the batch that follows at the same index
		}
		p.built[b.seq%uint64(len(p.built))] <- b
		select {
		case said := <-p.reuse[b.Slot]:
			if said == copied {
				return true, nil
			}
		case <-ctx.Done():
			return false, nil
		}
		select {
		case worker = <-p.workers.idle:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// take gets the next batch from the source.
func (p *Pipeline) take(b *Batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return false
	default:
	}
	if !p.cfg.Source.Next(b) {
		p.progress.Lock()
		defer p.progress.Unlock()
		p.end = p.next
		close(p.ended)
		p.warmed()
		return false
	}
	b.LeftOut = b.LeftOut[:0]
	b.seq = p.next
	p.next++
	return true
}

// finish records a finished batch.
func (p *Pipeline) finish(seq uint64) {
	p.progress.Lock()
	defer p.progress.Unlock()
	n := uint64(len(p.finished))
	p.finished[seq%n] = true
	for p.finished[p.inFront%n] {
		p.finished[p.inFront%n] = false
		p.inFront++
	}
	p.warmed()
}

// warmed closes warm when enough of the first batches are finished and those that fit in device slots are copied, so
// that training does not start while a copy is in progress that nothing could hide. The caller holds progress.
func (p *Pipeline) warmed() {
	want := uint64(p.cfg.Prefetch)
	select {
	case <-p.ended:
		want = min(want, p.end)
	default:
	}
	if p.inFront >= want && p.onDevice >= min(p.inFront, uint64(len(p.slots))) {
		p.closeWarm()
	}
}

func (p *Pipeline) endWarm() {
	p.progress.Lock()
	defer p.progress.Unlock()
	p.closeWarm()
}

// closeWarm is idempotent. The caller holds progress.
func (p *Pipeline) closeWarm() {
	select {
	case <-p.warm:
	default:
		close(p.warm)
	}
}

// build decodes the batch and passes it through the stages until an attempt succeeds. It releases the worker after
// decoding.
func (p *Pipeline) build(ctx context.Context, worker int, queue time.Duration, b *Batch) error {
	for {
		again, err := p.attempt(ctx, worker, queue, b)
		if err != nil || !again {
			return err
		}
		select {
		case worker = <-p.workers.idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *Pipeline) attempt(ctx context.Context, worker int, queue time.Duration, b *Batch) (again bool, err error) {
	p.glances[b.Slot].set(Preparing, 0, b.shownStep())
	began := time.Now()
	rejected, err := p.cfg.Decoder.Decode(ctx, worker, b)
	ended := time.Now()
	p.workers.free(worker)
	b.cost = append(b.cost[:0], cost{queue, ended.Sub(began)})
	p.worked(0, worker, b, began, ended, ended.Sub(began))
	if err != nil {
		return false, fmt.Errorf("decode: %w", err)
	}
	if err := p.reject(b, "decode", rejected); err != nil {
		return false, err
	}
	for i, s := range p.cfg.Stages {
		if s.Augment && b.Eval {
			b.cost = append(b.cost, cost{})
			continue
		}
		p.glances[b.Slot].set(Preparing, 1+i, b.shownStep())
		began := time.Now()
		rejected, busy, err := s.Stage.Process(ctx, b)
		ended := time.Now()
		b.cost = append(b.cost, cost{max(0, ended.Sub(began)-busy), busy})
		p.worked(1+i, -1, b, began, ended, busy)
		p.stats.worked(1+i, ended, busy)
		switch {
		case errors.Is(err, ErrRebuild):
			p.stats.rebuilt.Add(1)
			return true, nil
		case err != nil:
			return false, fmt.Errorf("stage %s: %w", s.Name, err)
		case len(rejected) > 0:
			for _, r := range rejected {
				if b.Rows[r.Row] < 0 {
					return false, fmt.Errorf("stage %s rejects row %d, but the row is empty: %s",
						s.Name, r.Row, r.Reason)
				}
			}
			return true, p.reject(b, s.Name, rejected)
		}
	}
	return false, nil
}

// reject empties rows of the batch.
func (p *Pipeline) reject(b *Batch, phase string, rows []Rejected) error {
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		rows[i].Phase = phase
	}
	if p.cfg.Reject != nil {
		if err := p.cfg.Reject(b, rows); err != nil {
			return err
		}
	}
	for _, r := range rows {
		b.LeftOut = append(b.LeftOut, b.Rows[r.Row])
		b.Rows[r.Row] = -1
	}
	return nil
}

// Warm returns a channel that is closed when the first Prefetch batches of the plan are finished and those of them that
// fit are in device slots, when there are no more batches, or when the pipeline has ended. Later batches that are
// finished earlier do not count.
func (p *Pipeline) Warm() <-chan struct{} { return p.warm }

// Finished returns the number of finished batches, from the first on without a gap.
func (p *Pipeline) Finished() int {
	p.progress.Lock()
	defer p.progress.Unlock()
	return int(p.inFront)
}

// Ready reports whether Acquire would return a batch at once.
func (p *Pipeline) Ready() bool { return len(p.ready) > 0 }

// Acquire waits for the next batch in the order of the plan. It returns io.EOF after the last one, the failure that
// stopped the pipeline, or ctx's error.
func (p *Pipeline) Acquire(ctx context.Context) (*DeviceSlot, error) {
	began := time.Now()
	select {
	case d, ok := <-p.ready:
		if !ok {
			if p.failure != nil {
				return nil, p.failure
			}
			return nil, io.EOF
		}
		p.move(d, Ready, Training)
		p.stats.acquired(&d.Batch, time.Since(began))
		p.adapt(&d.Batch, began)
		return d, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Release frees the slot. Its Batch is invalid afterwards.
func (p *Pipeline) Release(d *DeviceSlot) {
	p.move(d, Training, Free)
	p.free <- d
}
