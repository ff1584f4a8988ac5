package supervise

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCall(t *testing.T) {
	r := newRig(t, "ok")
	p := r.open()
	for slot := range 3 {
		req := request(slot)
		req.Instance = 1
		res, err := p.Call(t.Context(), req)
		if err != nil || len(res.Bad) != 0 || res.Busy != time.Microsecond {
			t.Fatalf("%+v, %v", res, err)
		}
		if got := r.Ring.Slot(slot)[17]; got != 2 {
			t.Errorf("slot %d holds %d", slot, got)
		}
	}
	req := request(0)
	req.Instance = 2
	if _, err := p.Call(t.Context(), req); err == nil || err.Error() != "plugin fake has no instance 2" {
		t.Errorf("an instance that does not exist: %v", err)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := callSlot(t, p, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("a call after Drain: %v", err)
	}
	s := p.Stats()
	if s.Calls != 3 || s.Failed+s.Lost+s.Restarts != 0 || s.P50 <= 0 || s.P99 < s.P50 || s.Slowest < s.P50*15/16 {
		t.Errorf("%+v", s)
	}
}

func TestManyCallsInFlight(t *testing.T) {
	r := newRig(t, "slow=1ms")
	r.Workers = 2
	p := r.open()
	var mu sync.Mutex
	served := map[ProcessID]int{}
	var wg sync.WaitGroup
	for slot := range testSlots {
		wg.Go(func() {
			for range 25 {
				res, err := callSlot(t, p, slot)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served[res.Process]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for slot := range testSlots {
		if got := r.Ring.Slot(slot)[4095]; got != 25 {
			t.Errorf("slot %d was worked on %d times, want 25", slot, got)
		}
	}
	if a, b := served[ProcessID{0, 0}], served[ProcessID{1, 0}]; a+b != 200 || min(a, b) < 60 {
		t.Errorf("the processes served %d and %d calls", a, b)
	}
}

func TestAnswersInAnyOrder(t *testing.T) {
	p := newRig(t, "swap").open()
	var wg sync.WaitGroup
	for slot := range 2 {
		wg.Go(func() {
			if _, err := callSlot(t, p, slot); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAnswers(t *testing.T) {
	t.Run("bad row", func(t *testing.T) {
		res, err := callSlot(t, newRig(t, "bad-row").open(), 0)
		if err != nil || len(res.Bad) != 1 || res.Bad[0] != (BadRow{1, "it is silent"}) {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("failure", func(t *testing.T) {
		p := newRig(t, "fail").open()
		for range 3 {
			_, err := callSlot(t, p, 0)
			if !errors.Is(err, ErrFailed) || err.Error() != "plugin fake: stage first failed: no idea what to do" {
				t.Error(err)
			}
		}
		if s := p.Stats(); s.Failed != 3 || s.Restarts != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("impossible time", func(t *testing.T) {
		res, err := callSlot(t, newRig(t, "lying-time").open(), 0)
		if err != nil || res.Busy > time.Minute {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestLostCalls(t *testing.T) {
	tests := []struct{ mode, want, exit string }{
		{
			"crash-at-call=3", "process lost: it ended: exit status 3, while it worked on stage first (step 1)",
			"exit status 3",
		},
		{"hang-at-call=3", "process lost: stage first: no result within 500ms", "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			r := newRig(t, tt.mode+",slow=20ms")
			r.CallTimeout = 500 * time.Millisecond
			p := r.open()
			pid := p.PIDs()[0]
			for range 2 {
				if _, err := callSlot(t, p, 0); err != nil {
					t.Fatal(err)
				}
			}
			_, err := callSlot(t, p, 1)
			if alive(pid) {
				t.Error("the process is there when Call returns")
			}
			at := r.Ring.Slot(1)[0]
			time.Sleep(20 * time.Millisecond)
			if now := r.Ring.Slot(1)[0]; now != at {
				t.Error("something still writes to the slot")
			}
			var e *PluginError
			if !errors.Is(err, ErrLost) || !errors.As(err, &e) || e.Err.Error() != tt.want || e.Exit != tt.exit {
				t.Errorf("%v, exit %q", err, e.Exit)
			}
			if _, err := callSlot(t, p, 1); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if s := p.Stats(); s.Lost != 1 || s.Restarts != 1 || s.Calls != 4 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestLossReachesAllCalls: a process dies with several calls in flight, while another one continues.
func TestLossReachesAllCalls(t *testing.T) {
	r := newRig(t, "crash-at-call=4,slow=200ms")
	r.Workers, r.InFlight = 2, 4
	p := r.open()
	var mu sync.Mutex
	outcomes := map[string]int{}
	var wg sync.WaitGroup
	for slot := range 7 { // four for the first process, three for the second
		wg.Go(func() {
			res, err := callSlot(t, p, slot)
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprintf("worker %d lost %v", res.Process.Worker, errors.Is(err, ErrLost))]++
		})
	}
	wg.Wait()
	if outcomes["worker 0 lost true"] != 4 || outcomes["worker 1 lost false"] != 3 {
		t.Errorf("%v", outcomes)
	}
	for slot := range 7 {
		if _, err := callSlot(t, p, slot); err != nil && !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	}
}

// TestReasonOfLossIsFound: when a process is lost with several calls, those calls come one at a time, so that only the
// one that is the reason is lost again.
func TestReasonOfLossIsFound(t *testing.T) {
	r := newRig(t, "crash-at-slot-2="+filepath.Join(marks(t), "mark"))
	p := r.open()
	var lost [4]int
	var calls sync.WaitGroup
	for slot := range lost {
		calls.Go(func() {
			for lost[slot] < 4 {
				req := request(slot)
				req.Order = uint64(slot)
				_, err := p.Call(t.Context(), req)
				if err == nil {
					return
				}
				if !errors.Is(err, ErrLost) {
					t.Error(err)
					return
				}
				lost[slot]++
			}
		})
	}
	calls.Wait()
	if want := [4]int{1, 1, 4, 1}; lost != want {
		t.Errorf("calls for slots were lost %v times, want %v", lost, want)
	}
}

func TestBrokenConnection(t *testing.T) {
	_, err := callSlot(t, newRig(t, "break-connection").open(), 0)
	const want = "plugin fake: process lost: its connection broke, while it worked on stage first (step 1): "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestInvalidResults(t *testing.T) {
	for mode, want := range map[string]string{
		"unknown-result": "process lost: it sent a result for call 1001, which is not in flight, while it worked on " +
			"stage first (step 1)",
		"end-stream": "process lost: it ended its stream",
		"lying-row":  "process lost: stage first: it rejects row 99 of a batch of 4",
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := callSlot(t, newRig(t, mode).open(), 0)
			var e *PluginError
			if !errors.As(err, &e) || e.Err.Error() != want || e.Exit != "signal: killed" || !e.Violated {
				t.Errorf("%v, violated %v, want %s", err, e.Violated, want)
			}
		})
	}
}

func TestCrashLoop(t *testing.T) {
	for _, mode := range []string{"crash-at-call=1", "crash-at-restart=FILE"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, strings.ReplaceAll(mode, "FILE", filepath.Join(marks(t), "started")))
			r.Restart = RestartPolicy{Limit: 2, Backoff: 10 * time.Millisecond}
			p := r.open()
			p.Kick(ProcessID{}, "for a start")
			var err error
			for lost := 0; ; lost++ {
				if _, err = callSlot(t, p, 0); !errors.Is(err, ErrLost) {
					break
				}
				if lost > 3 {
					t.Fatal("it never gives up")
				}
			}
			var e *PluginError
			if !errors.Is(err, ErrCrashLoop) || !errors.As(err, &e) || e.Exit != "exit status 3" ||
				e.LastStderr != "something terrible happened\n" {
				t.Errorf("%v", err)
			}
			if !strings.HasPrefix(
				err.Error(), "plugin fake: it keeps crashing: 2 restarts within 1m0s were not enough; the last time: ",
			) ||
				!strings.HasSuffix(err.Error(), "\nits last lines on stderr:\n  fake: something terrible happened") {
				t.Errorf("%v", err)
			}
			if s := p.Stats(); s.Restarts != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestContextEndsDuringCall(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		p := newRig(t, "slow=200ms").open()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, request(0)); err != nil {
			t.Errorf("a call under way: %v", err)
		}
		if _, err := p.Call(ctx, request(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call after the end: %v", err)
		}
	})
	t.Run("not answered", func(t *testing.T) {
		r := newRig(t, "hang-at-call=1")
		r.DrainTimeout = 200 * time.Millisecond
		p := r.open()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := p.Call(ctx, request(0))
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no result within 200ms") {
			t.Error(err)
		}
	})
	t.Run("no process", func(t *testing.T) {
		r := newRig(t, "crash-at-restart="+filepath.Join(marks(t), "started"))
		r.Restart = RestartPolicy{Limit: 100, Backoff: time.Hour, MaxBackoff: time.Hour}
		p := r.open()
		p.Kick(ProcessID{}, "for a start")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, request(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	r := newRing(b)
	p, err := NewPool(b.Context(), fakeConfig("ok", b.TempDir(), r))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	req := request(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Call(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
