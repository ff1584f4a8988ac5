package gputest

import (
	"errors"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
)

// Event is an event of the fake card.
type Event struct {
	c      *Context
	last   *point // the last recorded point
	closed bool
}

func (c *Context) NewEvent() (gpu.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("make an event"); err != nil {
		return nil, err
	}
	c.open["event"]++
	return &Event{c: c}, nil
}

// enter starts every call. The caller holds the context's mu.
func (e *Event) enter(op Op) error {
	if e.closed {
		return e.c.misuse("%s: event: %w", op, gpu.ErrClosed)
	}
	return e.c.enter(op)
}

func (e *Event) Synchronize() error {
	e.c.mu.Lock()
	err := e.enter("wait for an event")
	last := e.last
	e.c.mu.Unlock()
	if err != nil {
		return err
	}
	last.wait()
	return e.c.failed()
}

func (e *Event) Happened() (bool, error) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if err := e.enter("ask an event"); err != nil {
		return false, err
	}
	return e.last.happened(), nil
}

func (e *Event) Since(earlier gpu.Event) (time.Duration, error) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	const op = "measure time between events"
	start := earlier.(*Event)
	if err := e.enter(op); err != nil {
		return 0, err
	}
	if err := start.enter(op); err != nil {
		return 0, err
	}
	for _, p := range []*point{start.last, e.last} {
		if p == nil {
			return 0, errors.New(op + ": one was never recorded")
		}
		if !p.happened() {
			return 0, errors.New(op + ": one has not happened")
		}
	}
	return e.last.at.Sub(start.last.at), nil
}

func (e *Event) Close() error {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if e.closed {
		return nil
	}
	err := e.enter("close an event")
	e.closed = true
	e.c.open["event"]--
	return err
}
