package supervise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// pause makes a believe that the host did not run for so long.
func (a *awake) pause(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = a.last.Add(-d)
}

// TestWithin makes calls of some length in virtual time, with and without a pause of the host.
func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		name                string
		takes, paused, pass time.Duration // pass: until the pause
		late                bool
	}{
		{"in time", 4 * time.Second, 0, 0, false},
		{"late", 6 * time.Second, 0, 0, true},
		{"late by a pause", 6 * time.Second, 70 * time.Second, time.Second, false},
		{"late in spite of a pause", 11 * time.Second, 70 * time.Second, time.Second, true},
		{"a late beat is no pause", 6 * time.Second, beat, time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAwake()
				defer a.close()
				if tt.paused > 0 {
					time.AfterFunc(tt.pass, func() { a.pause(tt.paused) })
				}
				err := a.within(t.Context(), 5*time.Second, func(ctx context.Context) error {
					select {
					case <-time.After(tt.takes):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if errors.Is(err, errLate) != tt.late || !tt.late && err != nil {
					t.Errorf("late is %v: %v", tt.late, err)
				}
			})
		})
	}
}

// TestExpireAfterPause: a call whose deadline has passed while the host did not run gets a new one, once.
func TestExpireAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAwake()
		defer a.close()
		p := &process{cfg: &Config{awake: a}, pending: map[uint64]*call{}}
		c := &call{proc: p, limit: 30 * time.Second, pauses: a.count()}
		fired := 0
		c.timer = time.AfterFunc(c.limit, func() {
			fired++
			if fired == 1 {
				p.expire(c)
			}
		})
		p.pending[0] = c
		time.Sleep(time.Second)
		a.pause(70 * time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if fired != 2 || p.reason != "" {
			t.Errorf("the deadline passed %d times, and the process is killed: %q", fired, p.reason)
		}
	})
}
