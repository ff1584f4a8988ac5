package supervise

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestPhases(t *testing.T) {
	r := newRig(t, "ok")
	var mu sync.Mutex
	var got []Phase
	r.Reached = func(p Phase, id ProcessID, pid int) {
		mu.Lock()
		defer mu.Unlock()
		if id != (ProcessID{}) || !alive(pid) {
			t.Errorf("%s of process %v, which is %d", p, id, pid)
		}
		got = append(got, p)
	}
	p := r.open()
	if _, err := callSlot(t, p, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []Phase{Start, Handshake, Configure, Attach, Batch, Reply, Drain, Shutdown}
	// The answer may arrive before Reached was called for the call.
	if i, j := slices.Index(got, Batch), slices.Index(got, Reply); i == j+1 {
		got[i], got[j] = got[j], got[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFaultDuringStart: a process that is killed or stopped from outside while it starts is restarted; the run
// continues.
func TestFaultDuringStart(t *testing.T) {
	for _, phase := range []Phase{Start, Handshake, Configure, Attach} {
		for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
			if signal == unix.SIGSTOP && phase != Configure {
				continue // each takes its whole deadline
			}
			t.Run(string(phase)+" "+unix.SignalName(signal), func(t *testing.T) {
				r := newRig(t, "ok")
				if signal == unix.SIGSTOP {
					r.StartTimeout, r.ConfigureTimeout = 2*time.Second, 2*time.Second
				}
				r.Reached = func(p Phase, id ProcessID, pid int) {
					if p == phase && id.Generation == 0 {
						unix.Kill(pid, signal)
						for signal == unix.SIGSTOP && state(pid) != "T" { // it has time to answer until then
							time.Sleep(time.Millisecond)
						}
					}
				}
				p := r.open()
				if _, err := callSlot(t, p, 0); err != nil {
					t.Error(err)
				}
				if s := p.Stats(); s.Restarts != 1 {
					t.Errorf("%d restarts", s.Restarts)
				}
			})
		}
	}
}

func TestFaultDuringStartTwice(t *testing.T) {
	r := newRig(t, "ok")
	r.Reached = func(p Phase, _ ProcessID, pid int) {
		if p == Configure {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	e := r.refuse()
	if e.Err.Error() != "start: it ended before Configure was done: signal: killed" || !errors.Is(e, ErrLost) {
		t.Error(e)
	}
}
