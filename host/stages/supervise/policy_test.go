package supervise

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRestartPolicy(t *testing.T) {
	const (
		ms, sec = time.Millisecond, time.Second
		often   = "5 restarts within 1m0s were not enough"
		barren  = "5 restarts in a row without a finished batch"
	)
	rising := []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms}
	works := func(d time.Duration) life { return life{d, true} }
	tests := []struct {
		name  string
		limit int
		ended life
		takes time.Duration // from one restart to the next end
		want  []time.Duration
		loop  string // after those; empty: it continues
	}{
		{"does not start", 0, life{}, 0, rising, often},
		{"takes long to not start", 0, life{}, 30 * sec, rising, barren},
		{"hangs at every batch", 0, life{30 * sec, false}, 30 * sec, rising, barren},
		{"ends at every third batch", 0, works(ms), ms, rising, often},
		{"ends every 4 seconds", 0, works(4 * sec), 4 * sec, rising, often},
		{
			"ends every 13 seconds, in the first batch after a slow start", 0, works(sec), 13 * sec,
			append(rising, 800*ms, 800*ms, 800*ms), "",
		},
		{"is killed every 10 seconds", 0, works(10 * sec), 10 * sec, make([]time.Duration, 120), ""},
		{"is killed every hour", 0, works(time.Hour), time.Hour, make([]time.Duration, 3), ""},
		{"the wait is bounded", 9, life{}, 0, append(rising, 1600*ms, 3200*ms, 5*sec,
			5*sec), "9 restarts within 1m0s were not enough"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := RestartPolicy{Limit: tt.limit}
				policy.setDefaults()
				r := restarts{policy: policy}
				for i, want := range tt.want {
					wait, loop := r.next(time.Now(), tt.ended)
					if loop != "" || wait != want {
						t.Fatalf("restart %d waits %v, %s, want %v", i+1, wait, loop, want)
					}
					time.Sleep(wait + tt.takes)
				}
				if _, loop := r.next(time.Now(), tt.ended); loop != tt.loop {
					t.Errorf("after %d restarts: %q, want %q", len(tt.want), loop, tt.loop)
				}
			})
		})
	}
	t.Run("a finished batch ends a row of restarts", func(t *testing.T) {
		policy := RestartPolicy{}
		policy.setDefaults()
		r := restarts{policy: policy}
		now := time.Now()
		for i := range 20 {
			ended := life{up: time.Second, finished: i%4 == 0}
			if _, loop := r.next(now, ended); loop != "" {
				t.Fatalf("end %d: %s", i+1, loop)
			}
			now = now.Add(30 * time.Second)
		}
	})
}

func TestDeadlines(t *testing.T) {
	d := deadlines{first: time.Minute}
	if got := d.next(); got != time.Minute {
		t.Errorf("a first call has %v, want that of the start", got)
	}
	after := func(calls int, took, want time.Duration) {
		t.Helper()
		for range calls {
			d.observe(took)
		}
		if got := d.next(); got < want || got > want*17/16 {
			t.Errorf("after %d calls of %v: %v, want %v", calls, took, got, want)
		}
	}
	after(99, time.Millisecond, time.Minute)
	after(1, time.Millisecond, 30*time.Second)
	after(1, time.Hour, 30*time.Second) // one call that waited for a suspended machine
	after(100, 3*time.Second, time.Minute)
	d.fixed = time.Second
	after(0, 0, time.Second)
}

func TestQuota(t *testing.T) {
	for _, tt := range []struct{ lines, bytes int }{{10, 1 << 20}, {1000, 10 * 50}} {
		synctest.Test(t, func(t *testing.T) {
			q := quota{lines: tt.lines, bytes: tt.bytes}
			passed, dropped := 0, 0
			for range 300 { // three seconds of a line of 50 bytes each 10 ms
				ok, lost := q.take(time.Now(), 50)
				if ok {
					passed++
				}
				dropped += lost
				time.Sleep(10 * time.Millisecond)
			}
			if passed != 30 || dropped != 180 {
				t.Errorf("%+v: %d lines passed, %d were reported as dropped, want 30 and 180", tt, passed, dropped)
			}
		})
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("nothing has median %v", got)
	}
	for i := range 10_000 {
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 5 * time.Millisecond, 0.99: 9900 * time.Microsecond} {
		if got := h.quantile(q); got < want || got > want*17/16 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 15, 16, 17, 31, 32, 33, 1 << 40, 1<<63 - 1} {
		b := bucketOf(d)
		if up := upper(b); up < d || bucketOf(up) != b || b > 0 && upper(b-1) >= d {
			t.Errorf("%d is in bucket %d that ends at %d, after %d", d, b, up, upper(max(0, b-1)))
		}
	}
}
