package pipeline

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLook: a look at any time says which phase works on which batch, and what each slot holds.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		p, err := New(Config{
			Source: &plan{n: 2}, Decoder: takes(3 * ms), Stages: []Step{{Name: "features", Stage: stageTakes(5 * ms)}},
			Device: device(func(int, *Batch) error { time.Sleep(2 * ms); return nil }),
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); p.Run(t.Context()) }()
		go func() {
			for {
				d, err := p.Acquire(t.Context())
				if err != nil {
					return
				}
				time.Sleep(20 * ms)
				p.Release(d)
			}
		}()
		at := time.Now()
		for _, c := range []struct {
			ms     time.Duration
			ring   RingLook
			device DeviceLook
		}{
			{1, RingLook{Preparing, 0, 1}, DeviceLook{}},
			{4, RingLook{Preparing, 1, 1}, DeviceLook{}},
			{9, RingLook{Ready, 1, 1}, DeviceLook{State: Preparing}},
			{11, RingLook{Preparing, 0, 2}, DeviceLook{Training, 1}},
			{29, RingLook{Ready, 1, 2}, DeviceLook{Training, 1}},
			{40, RingLook{}, DeviceLook{Training, 2}},
			{60, RingLook{}, DeviceLook{}},
		} {
			time.Sleep(time.Until(at.Add(c.ms * ms)))
			synctest.Wait()
			if l := p.Look(); l.Ring[0] != c.ring || l.Device[0] != c.device {
				t.Errorf("at %d ms: %v, want %v and %v", c.ms, l, c.ring, c.device)
			}
		}
		<-done
	})
}

// TestLookAtEvaluation: a batch of the validation set is of no step.
func TestLookAtEvaluation(t *testing.T) {
	if s := (&Batch{Step: 4, Eval: true}).shownStep(); s != 0 {
		t.Error(s)
	}
	var g glance
	g.set(Ready, 200, 1<<40)
	if state, phase, step := g.get(); state != Ready || phase != 200 || step != 1<<40 {
		t.Error(state, phase, step)
	}
}
