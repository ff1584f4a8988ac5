package supervise

import (
	"errors"
	"os"
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
	if !errors.As(err, &e) || !strings.Contains(err.Error(), " of memory, and may use ") || e.Hint() != memoryHint {
		t.Errorf("%v, hint %q", err, e.Hint())
	}
}

// TestOverLimit: both amounts have the unit of the limit.
func TestOverLimit(t *testing.T) {
	for limit, want := range map[int64]string{
		300 << 20:     "it uses 300.5 MiB of memory, and may use 300.0 MiB",
		315_000_000:   "it uses 315.1 MB of memory, and may use 315.0 MB",
		315_000_001:   "it uses 300.5 MiB of memory, and may use 300.4 MiB",
		256_000 << 20: "it uses 300.5 MiB of memory, and may use 256000.0 MiB",
	} {
		if got := overLimit(300<<20+1<<19, limit); got != want {
			t.Errorf("%d: %s, want %s", limit, got, want)
		}
	}
}

// TestCPUTime: a process that computes takes time of the cores, and one that has ended has none.
func TestCPUTime(t *testing.T) {
	eventually(t, "time of the cores", func() bool {
		for range 1 << 20 {
			strings.Count("text", "t")
		}
		return cpuOf(os.Getpid()) > 0
	})
	if got := cpuOf(-1); got != 0 {
		t.Errorf("no process took %v", got)
	}
}
