package supervise

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestResize: processes are added and ended while calls are in flight, and no call is lost.
func TestResize(t *testing.T) {
	r := newRig(t, "slow=2ms")
	p := r.open()
	var over atomic.Bool
	var calls sync.WaitGroup
	served := make([]int, testSlots)
	for slot := range testSlots {
		calls.Go(func() {
			for !over.Load() {
				if _, err := callSlot(t, p, slot); err != nil {
					t.Error(err)
					return
				}
				served[slot]++
			}
		})
	}
	first := p.Running()[0]
	for _, n := range []int{3, 1, 2, 0, 2} {
		p.Resize(n)
		eventually(t, "processes", func() bool {
			return p.Workers() == max(1, n) && len(p.Running()) == max(1, n)
		})
	}
	if up := p.Running(); up[0] != first || up[1].ProcessID != (ProcessID{Worker: 4}) {
		t.Errorf("%v are up; the first was %v", up, first)
	}
	over.Store(true)
	calls.Wait()
	for slot, n := range served {
		if got := r.Ring.Slot(slot)[4095]; got != byte(n) {
			t.Errorf("slot %d was worked on %d times, want %d", slot, got, byte(n))
		}
	}
	if s := p.Stats(); s.Lost+s.Failed+s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	p.Resize(5)
	if n := p.Workers(); n != 2 {
		t.Errorf("%d processes after the end", n)
	}
}

// TestResizeWhileItEnds: the end of a pool waits for processes that start and leave.
func TestResizeWhileItEnds(t *testing.T) {
	for i := range 4 {
		drain, shrink := i%2 == 0, i < 2
		r := newRig(t, "slow=50ms")
		r.Workers = 2
		p := r.open()
		done := make(chan error, 1)
		go func() { _, err := callSlot(t, p, 0); done <- err }()
		eventually(t, "call in flight", func() bool { return p.inFlightOf(p.Running()[0].ProcessID) == 1 })
		p.Resize(4)
		if shrink {
			p.Resize(1)
		}
		if drain {
			if err := p.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		p.Close()
	}
}

// TestResizeWithoutSuccess: a process that cannot be started changes nothing for the others.
func TestResizeWithoutSuccess(t *testing.T) {
	r := newRig(t, "ok")
	p := r.open()
	p.cfg.Plugin.Command = []string{r.tmp + "/none"}
	p.Resize(2)
	eventually(t, "failure", func() bool { return p.Workers() == 1 })
	if _, err := callSlot(t, p, 0); err != nil {
		t.Error(err)
	}
	eventually(t, "warning", func() bool {
		return strings.Contains(r.log.String(), "plugin fake gets no further process: ")
	})
}
