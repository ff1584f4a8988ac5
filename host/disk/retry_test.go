package disk

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
			err := Retry(func() error {
				if calls++; calls == c.passes {
					return nil
				}
				return c.err
			})
			if passed := c.passes > 0; calls != c.calls || time.Since(began) != c.within || passed != (err == nil) || !passed && err != c.err {
				t.Errorf("%v: %d calls in %v, %v; want %d in %v", c.err, calls, time.Since(began), err, c.calls, c.within)
			}
		})
	}
}
