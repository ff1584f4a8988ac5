package supervise

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestRecycle: a process is replaced after its batch in flight, while the other process serves new calls.
func TestRecycle(t *testing.T) {
	r := newRig(t, "slow=200ms")
	r.Workers = 2
	p := r.open()
	before := p.Running()
	done := make(chan error, 1)
	go func() { _, err := callSlot(t, p, 0); done <- err }()
	eventually(t, "call in flight", func() bool { return p.inFlightOf(before[0].ProcessID) == 1 })
	p.Recycle(ProcessID{Worker: 7}, "no such process", "")
	p.Recycle(before[0].ProcessID, "it uses too much", "give it more")
	if up := p.Running(); len(up) != 1 || up[0] != before[1] {
		t.Errorf("up: %v", up)
	}
	if res, err := callSlot(t, p, 1); err != nil || res.Process != before[1].ProcessID {
		t.Errorf("a concurrent call: %+v, %v", res, err)
	}
	if err := <-done; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	eventually(t, "restart", func() bool { return len(p.Running()) == 2 })
	now := p.Running()
	if now[0].PID == before[0].PID || now[0].ProcessID != (ProcessID{Generation: 1}) || now[1] != before[1] {
		t.Errorf("%v, before %v", now, before)
	}
	if s := p.Stats(); s.Restarts != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	if want := "plugin fake is restarted: it uses too much"; !strings.Contains(r.log.String(), want) {
		t.Errorf("the log lacks %q", want)
	}
	p.Recycle(before[0].ProcessID, "it is gone", "")
	if !slices.Equal(p.Running(), now) {
		t.Error("a process was replaced that is not meant")
	}
}

// TestRecycleEndsInCrashLoop: a plugin that has to be recycled again and again is given up, with its own hint.
func TestRecycleEndsInCrashLoop(t *testing.T) {
	r := newRig(t, "ok")
	r.Restart = RestartPolicy{Limit: 1}
	p := r.open()
	for range 2 {
		eventually(t, "process", func() bool { return len(p.Running()) == 1 })
		p.Recycle(p.Running()[0].ProcessID, "it uses too much", "give it more")
		eventually(t, "end", func() bool { return len(p.Running()) == 0 || p.Running()[0].Generation > 0 })
	}
	_, err := callSlot(t, p, 0)
	var e *PluginError
	if !errors.As(err, &e) || !errors.Is(err, ErrCrashLoop) || e.Hint() != "give it more" ||
		!strings.Contains(err.Error(), "it uses too much") {
		t.Errorf("%v", err)
	}
}

// inFlightOf returns the number of calls in flight of a process.
func (p *Pool) inFlightOf(id ProcessID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.up && w.proc.id == id {
			return w.inFlight
		}
	}
	return 0
}
