package files

import (
	"sync/atomic"
	"time"
)

// Patience is how long the files of a run wait for a disk that may recover. A nil Patience does not wait. It may be
// used by several goroutines.
type Patience struct {
	limit time.Duration
	stop  <-chan struct{}
	spent atomic.Bool // the disk did not recover in time: the next file does not wait again
	said  atomic.Bool // what the process waits for
	warn  func(err error, limit time.Duration)
}

// Warn has a function called with the first error that is waited for, and again after the disk has recovered.
func (p *Patience) Warn(warn func(err error, limit time.Duration)) { p.warn = warn }

var process atomic.Pointer[Patience]

// WaitWith has the reads and the replacements of this process wait as p says, until the function that it returns is
// called. Without it, and with nil, they do not wait.
func WaitWith(p *Patience) (restore func()) {
	before := process.Swap(p)
	return func() { process.Store(before) }
}

func waiting() *Patience { return process.Load() }

// Wait calls write until it succeeds, as Retry does, and waits as this process does (WaitWith).
func Wait(write func() error) error { return waiting().Retry(write) }

// NewPatience returns a Patience of about this time. It ends when stop is closed; stop may be nil.
func NewPatience(limit time.Duration, stop <-chan struct{}) *Patience {
	return &Patience{limit: limit, stop: stop}
}

// Limit is the longest time to wait.
func (p *Patience) Limit() time.Duration { return p.limit }

// Retry calls write until it succeeds, or fails for good. As long as its error may pass, Retry waits 0.25, 0.5, 1, 2, 4
// and then 8 seconds between the calls. It returns the last error when the time is over or the run is to stop, and from
// then on after one call until one succeeds.
func (p *Patience) Retry(write func() error) error { return p.RetryAfter(write, func(error) {}) }

// RetryAfter is Retry, and calls waits with the first error before it waits, if it does.
func (p *Patience) RetryAfter(write func() error, waits func(error)) error {
	for wait, waited := 250*time.Millisecond, time.Duration(0); ; wait = min(2*wait, 8*time.Second) {
		err := write()
		switch {
		case p == nil:
			return err
		case err == nil:
			if waited > 0 || p.spent.Load() {
				p.spent.Store(false)
				p.said.Store(false)
			}
			return nil
		case !MayPass(err):
			return err
		case waited >= p.limit:
			p.spent.Store(true)
		}
		if p.spent.Load() {
			return err
		}
		if waited == 0 && !p.stopped() {
			waits(err)
			if p.warn != nil && !p.said.Swap(true) {
				p.warn(err, p.limit)
			}
		}
		select {
		case <-time.After(wait):
			waited += wait
		case <-p.stop:
			waited = p.limit // one more call
		}
	}
}

// stopped reports whether the run is to stop.
func (p *Patience) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}
