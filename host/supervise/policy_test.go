package supervise

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRestartPolicy(t *testing.T) {
	const never = -1
	ms := time.Millisecond
	tests := []struct {
		name   string
		limit  int
		gap    time.Duration // between one restart and the next end
		steady bool
		want   []time.Duration
	}{
		{"works, and ends every ten seconds", 0, 10 * time.Second, true, []time.Duration{0, 0, 0, 0, 0, 0, 0, 0}},
		{"ends at once", 0, 0, false, []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, never}},
		{"ends every ten seconds", 0, 10 * time.Second, false, []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, never}},
		{"ends every 13 seconds", 0, 13 * time.Second, false, []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 800 * ms, 800 * ms}},
		{"ends every minute", 0, time.Minute, false, []time.Duration{0, 0, 0}},
		{"the wait is bounded", 9, 0, false, []time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5 * time.Second, 5 * time.Second, never}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := RestartPolicy{Limit: tt.limit}
				policy.setDefaults()
				r := restarts{policy: policy}
				for i, want := range tt.want {
					wait, ok := r.next(time.Now(), tt.steady)
					if ok != (want != never) || ok && wait != want {
						t.Fatalf("restart %d waits %v, %v, want %v", i+1, wait, ok, want)
					}
					time.Sleep(wait + tt.gap)
				}
			})
		})
	}
}

func TestDeadlines(t *testing.T) {
	var d deadlines
	for _, step := range []struct{ took, want time.Duration }{
		{0, 30 * time.Second}, {time.Second, 30 * time.Second}, {2 * time.Second, 40 * time.Second}, {time.Millisecond, 40 * time.Second},
	} {
		d.observe(step.took)
		if got := d.next(); got != step.want {
			t.Errorf("behind a call of %v: %v, want %v", step.took, got, step.want)
		}
	}
	d.fixed = time.Second
	if got := d.next(); got != time.Second {
		t.Errorf("a fixed deadline of 1s is %v", got)
	}
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota{limit: 10}
		passed, dropped := 0, 0
		for range 300 { // three seconds of a line each 10 ms
			ok, lost := q.take(time.Now())
			if ok {
				passed++
			}
			dropped += lost
			time.Sleep(10 * time.Millisecond)
		}
		if passed != 30 || dropped != 180 {
			t.Errorf("%d lines passed, %d were told as dropped, want 30 and 180", passed, dropped)
		}
	})
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
			t.Errorf("%d is in bucket %d that ends at %d, behind %d", d, b, up, upper(max(0, b-1)))
		}
	}
}
