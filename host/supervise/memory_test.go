package supervise

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMemoryLimit: a process above its limit is replaced, and the peak is known without a limit, too.
func TestMemoryLimit(t *testing.T) {
	r := newRig(t, "ok")
	p := r.open()
	if _, err := callSlot(t, p, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a peak", func() bool { return p.Stats().PeakMemory > 1<<20 })
	p.Close()

	r.MemoryLimit, r.MemoryInterval, r.Restart = 1, time.Millisecond, RestartPolicy{Limit: 1, Backoff: time.Millisecond}
	p = r.open()
	var err error
	eventually(t, "the end of the pool", func() bool {
		_, err = callSlot(t, p, 0)
		return errors.Is(err, ErrCrashLoop)
	})
	var e *PluginError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "MB of memory, and may use 0") || e.Hint() != memoryHint {
		t.Errorf("%v, hint %q", err, e.Hint())
	}
}
