package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// delay is how long a step waits at most until it is delivered. A reader of the files sees it that much later, and a killed
	// run loses it: it is after the last checkpoint, where a resumed run goes on, since Sync comes before every checkpoint.
	delay = 250 * time.Millisecond
	// maxWaiting is how many events wait for required sinks at most: some 20 MB of steps. Then Publish waits for the sinks.
	maxWaiting = 1 << 16
	// patience is how long Close waits for best-effort sinks: a terminal may be stopped, a server may be gone.
	patience = 5 * time.Second
)

// Bus takes the events of a run and hands them to its sinks.
//
// Steps are delivered many at a time, by a goroutine of the Bus: who publishes one pays for a copy of it and nothing else. On a machine
// whose trainer sleeps while the GPU works, and then finds nothing in its caches, writing one line took 44 µs of a step. All other
// events are rare and are delivered at once, with the steps before them.
//
// All methods are safe for concurrent use.
type Bus struct {
	wake chan struct{} // of capacity 1: deliver now
	stop chan struct{}
	done chan struct{}

	delivering sync.Mutex // held while events are handed over; guards out and the sinks' calls
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

// Require adds a sink that must not lose an event. It gets those that are published from now on. Training waits for a required sink that is
// many thousands of events late, and the error of one ends the run. It must not publish while it takes events.
func (b *Bus) Require(name string, s Sink) {
	b.settle(func() { b.required = append(b.required, &required{Sink: s, name: name}) })
}

// Offer adds a best-effort sink, one for people or dashboards. It gets the events that are published from now on, through a queue of
// QueueLength events and on a goroutine of its own. What the full queue has no room for is dropped, counted and reported: training never
// waits for the sink and never fails with it. fault is called with what goes wrong with the sink, on the sink's goroutine; nil ignores it.
func (b *Bus) Offer(name string, s Sink, fault func(text string)) {
	b.settle(func() { b.queues = append(b.queues, newQueue(name, s, fault)) })
}

// settle changes the sinks when nothing waits for the old ones.
func (b *Bus) settle(change func()) {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Publish hands over an event, which belongs to the caller again when Publish returns. The error is that of a required sink that has
// failed on this event or an earlier one.
func (b *Bus) Publish(e Event) error {
	_, later := e.(*Step)
	b.mu.Lock()
	for len(b.in.events) >= maxWaiting {
		b.mu.Unlock()
		b.Flush()
		b.mu.Lock()
	}
	b.in.add(e)
	err := b.err
	b.mu.Unlock()
	if !later {
		b.Wake()
	}
	return err
}

// Wake has what was published delivered soon. It does not wait for that.
func (b *Bus) Wake() { signal(b.wake) }

// Flush delivers what was published, and returns the error of a required sink, now or earlier. Best-effort sinks may take it later.
func (b *Bus) Flush() error {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	b.deliver()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Sync delivers what was published and makes it durable.
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

// Snapshot returns where the run stands: what has been published so far is in it.
func (b *Bus) Snapshot() Snapshot {
	b.now.mu.Lock()
	s := b.now.clone()
	b.mu.Lock()
	for _, e := range b.in.events { // what waits to be delivered
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
		b.Flush() // whoever publishes gets the error
	}
}

// deliver hands over what was published. b.delivering is held.
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

// fail keeps the first error. The sink gets no more events.
func (b *Bus) fail(r *required, err error) {
	r.failed = true
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

// Close delivers what was published and closes the sinks. The error is of closing the required ones: that of a sink which failed before
// has been returned. It waits for the best-effort sinks for some seconds at most. It may be called again.
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
