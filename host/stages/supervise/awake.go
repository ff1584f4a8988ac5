package supervise

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	beat = 500 * time.Millisecond
	// longBeat is a time between two beats in which the host did not run: it was stopped, or the machine was. On a busy
	// machine a beat comes late as well, and then the plugins were late for the same reason.
	longBeat = 4 * beat
)

// awake finds the times in which the host itself did not run. A plugin may have answered in time then, and no one was
// there to see it: its delay is counted from 0 again.
type awake struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex // guards the rest
	last   time.Time  // beat
	pauses int
}

func newAwake() *awake {
	ctx, cancel := context.WithCancel(context.Background())
	a := &awake{cancel: cancel, done: make(chan struct{}), last: time.Now()}
	go a.run(ctx)
	return a
}

func (a *awake) run(ctx context.Context) {
	defer close(a.done)
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			a.count()
		}
	}
}

// close ends the beat. It may be called again.
func (a *awake) close() {
	a.cancel()
	<-a.done
}

// count returns how many pauses there have been. After a pause a timer may fire before the next beat, so it is a beat
// as well.
func (a *awake) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if now.Sub(a.last) >= longBeat {
		a.pauses++
	}
	a.last = now
	return a.pauses
}

// within makes a call that may take that long, without pauses of the host. It does not send the deadline to the plugin:
// otherwise the plugin's side of the connection could end the call first, with its own error.
func (a *awake) within(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := fmt.Errorf("%w within %v", errLate, limit)
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for pauses := a.count(); ; {
			select {
			case <-over:
				return
			case <-time.After(limit):
			}
			now := a.count()
			if now == pauses {
				cancel(late)
				return
			}
			pauses = now
		}
	}()
	err := call(ctx)
	close(over)
	<-watched
	if err != nil && context.Cause(ctx) == late {
		return late
	}
	return err
}
