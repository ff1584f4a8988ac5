package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// QueueLength limits the events that wait for a best-effort sink.
const QueueLength = 4096

// queue delivers events to a best-effort sink, on a goroutine of its own.
type queue struct {
	name  string
	sink  Sink
	fault func(text string)
	wake  chan struct{} // of capacity 1: there are events, or no more will come
	done  chan struct{}

	mu      sync.Mutex // guards what follows; held only while events are copied
	in      batch
	dropped int // since it was last reported
	failed  bool
	closed  bool
}

func newQueue(name string, sink Sink, fault func(text string)) *queue {
	q := &queue{name: name, sink: sink, fault: fault, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// offer copies events into the queue until it is full.
func (q *queue) offer(events []Event) {
	q.mu.Lock()
	for _, e := range events {
		switch {
		case q.failed:
		case len(q.in.events) == QueueLength:
			q.dropped++
		default:
			q.in.add(e)
		}
	}
	q.mu.Unlock()
	signal(q.wake)
}

// end makes run return when the queue is empty.
func (q *queue) end() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.wake)
}

// wait returns when the sink is closed or late is done. In the second case it abandons the sink.
func (q *queue) wait(late context.Context) {
	select {
	case <-q.done:
	case <-late.Done():
		select {
		case <-q.done:
		default:
			q.report(errors.New("too slow: the remaining events are dropped"))
		}
	}
}

func (q *queue) run() {
	defer close(q.done)
	var out batch
	for {
		<-q.wake
		q.mu.Lock()
		q.in, out = out, q.in
		closed := q.closed
		q.mu.Unlock()
		q.take(out.events)
		out.reset()
		if closed {
			q.report(q.sink.Close())
			return
		}
	}
}

// take passes events to the sink, and reports the number of dropped events.
func (q *queue) take(events []Event) {
	if len(events) == 0 {
		return
	}
	if err := q.sink.Take(events); err != nil {
		q.mu.Lock()
		q.failed = true
		q.in.reset()
		q.mu.Unlock()
		q.report(fmt.Errorf("%w; it gets no more events", err))
	}
	q.mu.Lock()
	dropped := q.dropped
	q.dropped = 0
	q.mu.Unlock()
	if dropped > 0 {
		q.report(fmt.Errorf("too slow: %d events were dropped", dropped))
	}
}

func (q *queue) report(err error) {
	if err != nil && q.fault != nil {
		q.fault(q.name + ": " + err.Error())
	}
}

// signal fills a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
