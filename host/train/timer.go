package train

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
)

// Work is a kind of work of a GPU for a step.
type Work int

// Kinds of work, in the order of a step.
const (
	Training Work = iota // forward and backward
	Accumulating
	Optimizing
	Evaluating
	Transferring // of a batch, to its device slot
)

func (w Work) String() string {
	return [...]string{"train", "accumulate", "optimizer", "evaluate", "transfer"}[w]
}

// Timer measures, by the GPU's clock, the work of a model, its optimizer and the copier. Events are recorded around the
// work and read when the host waits for its result anyway, so it costs a few microseconds per step and no waiting. A
// nil Timer measures nothing.
//
// Transferring is for the copier, all other work for the trainer's goroutine, Transfers for any goroutine.
type Timer struct {
	// Spent, if set before the first batch, is called for all work, with times on the host's clock that are exact to
	// about 20 µs. Calls for Transferring come from the copier, all others from the trainer; those of one stream do not
	// overlap.
	Spent func(w Work, began, ended time.Time)

	closers
	device Device
	// clock is a stream without work: an event recorded there happens at once.
	clock gpu.Stream
	// Queued and awaited work use separate events, alternately: the next batch is queued before the previous result is
	// read.
	computing    [2][Transferring]meter
	turn         int // that of the work being queued
	transferring meter

	mu       sync.Mutex // guards the rest
	anchor   moment
	next     moment       // the next anchor
	renew    bool         // next is recorded
	last     [2]time.Time // by stream, the end of the last work: compute, transfer
	overlaps overlaps
	window   struct{ train, optimize time.Duration }
}

// meter is a pair of events around work.
type meter struct {
	begin, end gpu.Event
	pending    bool // recorded and not yet read
}

// moment is an event with a known time on the host's clock.
type moment struct {
	event gpu.Event
	at    time.Time
}

// anchorAge is the age at which the anchor is renewed. CUDA returns the time between two events in milliseconds as an
// f32, which is exact to CUDA's resolution of half a microsecond up to four seconds. The clocks of host and GPU also
// drift.
const anchorAge = 2 * time.Second

// NewTimer returns a timer for the streams of a device on a GPU. It must be closed before they are.
func NewTimer(d Device) (*Timer, error) {
	t := &Timer{device: d, overlaps: overlaps{copies: make([]transfer, 0, 16)}}
	events := []*gpu.Event{&t.anchor.event, &t.next.event, &t.transferring.begin, &t.transferring.end}
	for turn := range t.computing {
		for w := range t.computing[turn] {
			events = append(events, &t.computing[turn][w].begin, &t.computing[turn][w].end)
		}
	}
	for _, e := range events {
		var err error
		if *e, err = d.Context.NewEvent(); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.add((*e).Close)
	}
	var err error
	if t.clock, err = d.Context.NewStream(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.add(t.clock.Close)
	t.anchor.at = time.Now()
	if err := errors.Join(t.clock.Record(t.anchor.event), t.anchor.event.Synchronize()); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Timer) stream(w Work) gpu.Stream {
	if w == Transferring {
		return t.device.Transfer
	}
	return t.device.Compute
}

func (t *Timer) meter(w Work) *meter {
	if w == Transferring {
		return &t.transferring
	}
	return &t.computing[t.turn][w]
}

// begin is called before work, end after it.
func (t *Timer) begin(w Work) error {
	if t == nil {
		return nil
	}
	return t.stream(w).Record(t.meter(w).begin)
}

func (t *Timer) end(w Work) error {
	if t == nil {
		return nil
	}
	t.meter(w).pending = true
	return t.stream(w).Record(t.meter(w).end)
}

// around measures the work that fn queues.
func (t *Timer) around(w Work, fn func() error) error {
	if err := t.begin(w); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return t.end(w)
}

// queued is called when the work of a batch is queued and the next work belongs to another batch.
func (t *Timer) queued() {
	if t != nil {
		t.turn = 1 - t.turn
	}
}

// computed reads the work queued before the last call of queued. It must be done.
func (t *Timer) computed() error {
	if t == nil {
		return nil
	}
	done := &t.computing[1-t.turn]
	for w := range done {
		if !done[w].pending {
			continue
		}
		s, took, err := t.read(Work(w), &done[w])
		if err != nil {
			return err
		}
		t.count(Work(w), s, took)
		if t.Spent != nil {
			t.Spent(Work(w), s.began, s.ended)
		}
	}
	return t.renewAnchor()
}

// transferred reads the transfer that has just ended.
func (t *Timer) transferred() error {
	if t == nil {
		return nil
	}
	s, _, err := t.read(Transferring, &t.transferring)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.overlaps.copied(s)
	t.mu.Unlock()
	if t.Spent != nil {
		t.Spent(Transferring, s.began, s.ended)
	}
	return nil
}

// read returns the time and the duration of work. Both of its events have happened.
func (t *Timer) read(w Work, m *meter) (s span, took time.Duration, err error) {
	m.pending = false
	t.mu.Lock()
	defer t.mu.Unlock()
	since, err := m.end.Since(t.anchor.event)
	if err == nil {
		took, err = m.end.Since(m.begin)
	}
	if err != nil {
		return span{}, 0, fmt.Errorf("time of %s: %w", w, err)
	}
	s.ended = t.anchor.at.Add(since)
	s.began = s.ended.Add(-took)
	// A new anchor may shift the times by the drift of the clocks.
	last := &t.last[0]
	if w == Transferring {
		last = &t.last[1]
	}
	s.began = later(s.began, *last)
	s.ended = later(s.ended, s.began)
	*last = s.ended
	return s, took, nil
}

// count adds computed work and finds the transfers that overlapped with it.
func (t *Timer) count(w Work, s span, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch w {
	case Training, Accumulating:
		t.window.train += took
	case Optimizing:
		t.window.optimize += took
	}
	t.overlaps.computed(s)
}

// renewAnchor renews the anchor when it is too old. The new one is used from the next call on, when it has certainly
// happened.
func (t *Timer) renewAnchor() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renew {
		t.anchor, t.next, t.renew = t.next, t.anchor, false
		return nil
	}
	now := time.Now()
	if now.Sub(t.anchor.at) < anchorAge {
		return nil
	}
	t.next.at, t.renew = now, true
	return t.clock.Record(t.next.event)
}

// takeWindow returns how long the GPU trained and updated weights since the last call, and when that ended.
func (t *Timer) takeWindow() (train, optimize time.Duration, done time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.window
	t.window.train, t.window.optimize = 0, 0
	return w.train, w.optimize, t.last[0]
}

// restart resets the measurements: trial runs are no steps.
func (t *Timer) restart() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.overlaps = overlaps{at: t.overlaps.at, copies: t.overlaps.copies[:0]}
	t.window.train, t.window.optimize = 0, 0
}

// Transfers returns the totals so far. A transfer is counted after its batch has been computed.
func (t *Timer) Transfers() Transfers {
	if t == nil {
		return Transfers{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overlaps.transfers
}
