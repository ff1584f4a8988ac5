package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// delay is the longest time until a step is delivered. A reader of the files sees the step later by this time, and
	// a killed run loses it. A resumed run does not miss it: Sync comes before every checkpoint, so the step is after
	// the last checkpoint.
	delay = 250 * time.Millisecond
	// maxWaiting limits the events that wait for required sinks, to about 20 MB of steps. At the limit, Publish waits
	// for the sinks.
	maxWaiting = 1 << 16
	// patience is the longest time that Close waits for best-effort sinks: a terminal may be stopped, a server may not
	// answer.
	patience = 5 * time.Second
)

// Bus delivers the events of a run to its sinks.
//
// A goroutine of the Bus delivers steps many at a time, so publishing a step costs one copy of it. Measured with a
// trainer that sleeps while the GPU works, and so has cold caches, writing one line took 44 µs of a step. The parts of
// a Work come as often. All other events are rare and are delivered immediately, with the events before them.
//
// All methods are safe for concurrent use.
type Bus struct {
	wake chan struct{} // of capacity 1: deliver now
	stop chan struct{}
	done chan struct{}

	delivering sync.Mutex // held during delivery; guards out and the calls of sinks
	out        batch

	mu       sync.Mutex // guards what follows; the last to be locked
	in       batch
	required []*required
	queues   []*queue
	err      error // of the first required sink that failed
	closed   bool

	now state // guards itself; locked before mu
}

// required is a sink that must not lose an event.
type required struct {
	Sink
	name   string
	failed bool
}

// NewBus returns a Bus without sinks. It is closed with Close.
func NewBus() *Bus {
	b := &Bus{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	b.now.at.Phase = Preparing
	go b.run()
	return b
}

// Require adds a sink that must not lose an event. It receives the events that are published from now on. Training
// waits for a required sink that is many thousands of events late, and its error ends the run. A sink must not publish
// in Take.
func (b *Bus) Require(name string, s Sink) {
	b.changeSinks(func() { b.required = append(b.required, &required{Sink: s, name: name}) })
}

// RequireFile is Require for a file of the run folder: a checkpoint is saved only when the lines before it are durable.
func (b *Bus) RequireFile(name string, s Durable) { b.Require(name, s) }

// Offer adds a best-effort sink, such as a console or a dashboard. It receives the events that are published from now
// on, through a queue of QueueLength events and on a goroutine of its own. If the queue is full, events are dropped,
// counted and reported: training never waits for the sink and does not fail if the sink fails. fault is called with
// each problem of the sink, on the sink's goroutine; nil ignores problems.
func (b *Bus) Offer(name string, s Sink, fault func(text string)) {
	b.changeSinks(func() { b.queues = append(b.queues, newQueue(name, s, fault)) })
}

// changeSinks delivers the events that wait for the present sinks, then changes the sinks.
func (b *Bus) changeSinks(change func()) {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Publish copies an event; the caller may change it when Publish returns. The error is from a required sink that has
// failed on this event or an earlier one.
func (b *Bus) Publish(e Event) error {
	b.mu.Lock()
	for len(b.in.events) >= maxWaiting {
		b.mu.Unlock()
		b.Flush()
		b.mu.Lock()
	}
	b.in.add(e)
	err := b.err
	b.mu.Unlock()
	if !later(e) {
		b.Wake()
	}
	return err
}

// Wake starts the delivery of all published events. It does not wait for its end.
func (b *Bus) Wake() { signal(b.wake) }

// Flush delivers all published events to the required sinks, and returns the error of one, from now or earlier.
// Best-effort sinks may receive the events later.
func (b *Bus) Flush() error {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Sync delivers all published events and makes them durable.
func (b *Bus) Sync() error {
	if err := b.Flush(); err != nil {
		return err
	}
	b.delivering.Lock()
	defer b.delivering.Unlock()
	for _, r := range b.required {
		if d, ok := r.Sink.(Durable); ok {
			if err := d.Sync(); err != nil {
				b.fail(r, err)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Snapshot returns the progress of the run, including every event published so far.
func (b *Bus) Snapshot() Snapshot {
	b.now.mu.Lock()
	s := b.now.clone()
	b.mu.Lock()
	for _, e := range b.in.events { // not delivered yet
		s.take(e)
	}
	b.mu.Unlock()
	b.now.mu.Unlock()
	return s.snapshot()
}

// run delivers until Close.
func (b *Bus) run() {
	defer close(b.done)
	t := time.NewTicker(delay)
	defer t.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-b.wake:
		case <-t.C:
		}
		b.Flush() // Publish returns the error
	}
}

// deliver passes all published events to the sinks. b.delivering is held.
func (b *Bus) deliver() {
	b.now.mu.Lock()
	b.mu.Lock()
	b.in, b.out = b.out, b.in
	b.mu.Unlock()
	events := b.out.events
	for _, e := range events {
		b.now.take(e)
	}
	b.now.mu.Unlock()
	if len(events) == 0 {
		return
	}
	for _, q := range b.queues {
		q.offer(events)
	}
	for _, r := range b.required {
		if r.failed {
			continue
		}
		if err := r.Take(events); err != nil {
			b.fail(r, err)
		}
	}
	b.out.reset()
}

// fail keeps the first error. The sink receives no more events.
func (b *Bus) fail(r *required, err error) {
	r.failed = true
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

// Close delivers all published events and closes the sinks. It returns the errors of closing required sinks, except of
// sinks whose failure was reported before. It waits a few seconds at most for the best-effort sinks. Close is
// idempotent.
func (b *Bus) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	close(b.stop)
	<-b.done
	b.delivering.Lock()
	defer b.delivering.Unlock()
	var errs []error
	known := b.err != nil
	if b.deliver(); !known {
		errs = append(errs, b.err)
	}
	for _, r := range b.required {
		if err := r.Close(); err != nil && !r.failed {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, err))
		}
	}
	for _, q := range b.queues {
		q.end()
	}
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, q := range b.queues {
		q.wait(late)
	}
	return errors.Join(errs...)
}
