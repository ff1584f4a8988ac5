package files

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetry: what may pass is tried again for about a minute, everything else fails at once.
func TestRetry(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err    error
		passes int // at this call; 0 for never
		calls  int
		within time.Duration
	}{
		{nil, 1, 1, 0},
		{syscall.ENOSPC, 4, 4, 1750 * time.Millisecond},
		{fmt.Errorf("write: %w", syscall.EIO), 2, 2, 250 * time.Millisecond},
		{syscall.EDQUOT, 0, 13, 63750 * time.Millisecond},
		{other, 0, 1, 0},
		{syscall.EFBIG, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, calls := time.Now(), 0
			err := NewPatience(time.Minute, nil).Retry(func() error {
				if calls++; calls == c.passes {
					return nil
				}
				return c.err
			})
			passed := c.passes > 0
			if calls != c.calls || time.Since(began) != c.within || passed != (err == nil) || !passed && err != c.err {
				t.Errorf("%v: %d calls in %v, %v; want %d in %v", c.err, calls, time.Since(began), err, c.calls,
					c.within)
			}
		})
	}
}

// TestRetryOnce: files that share a disk wait for it once, until it has recovered.
func TestRetryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var result error
		calls := 0
		write := func() error { calls++; return result }
		p := NewPatience(time.Second, nil)
		for _, c := range []struct {
			result error
			calls  int
		}{{syscall.ENOSPC, 4}, {syscall.ENOSPC, 1}, {nil, 1}, {syscall.ENOSPC, 4}} {
			result, calls = c.result, 0
			if err := p.Retry(write); err != c.result || calls != c.calls {
				t.Errorf("%v: %v after %d calls, want %d", c.result, err, calls, c.calls)
			}
		}
		result, calls, p = syscall.ENOSPC, 0, nil
		if err := p.Retry(write); err != result || calls != 1 {
			t.Errorf("without patience: %v after %d calls", err, calls)
		}
	})
}

// TestRetryStops: a run that is to stop does not wait for its disk.
func TestRetryStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		began := time.Now()
		err := NewPatience(time.Hour, stop).Retry(func() error { return syscall.ENOSPC })
		if took := time.Since(began); err != syscall.ENOSPC || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}
