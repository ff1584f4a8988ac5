package supervise

import "testing"

// TestPause: a process without a call is stopped, and works, ends and is replaced like any other.
func TestPause(t *testing.T) {
	r := newRig(t, "ok")
	r.Pause, r.Workers = true, 2
	p := r.open()
	stopped := func(when string) {
		t.Helper()
		for _, pid := range p.PIDs() {
			if s := state(pid); s != "T" {
				t.Errorf("%s: process %d is in state %s", when, pid, s)
			}
		}
	}
	stopped("at the start")
	for slot := range 4 {
		if _, err := callSlot(t, p, slot); err != nil {
			t.Fatal(err)
		}
		stopped("after a call")
	}
	p.Kick(ProcessID{}, "a test")
	eventually(t, "another process", func() bool { return len(p.PIDs()) == 2 })
	stopped("after a restart")
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}
