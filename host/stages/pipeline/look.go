package pipeline

import "sync/atomic"

// Look is what the slots of a pipeline hold at one moment, for a person who watches.
type Look struct {
	Ring   []RingLook
	Device []DeviceLook
}

// RingLook is a ring slot. Phase, an index into Stats.Phases, is what works or last worked on its batch; it means
// nothing in a free slot. Step is the optimizer step of the batch from 1, 0 in a free slot and for a batch of an
// evaluation.
type RingLook struct {
	State State // Free, Preparing or Ready
	Phase int
	Step  int64
}

// DeviceLook is a device slot. Step is as that of a RingLook, and also 0 while the slot is prepared.
type DeviceLook struct {
	State State
	Step  int64
}

// glance is a RingLook or a DeviceLook in one word, so that no reader and no writer of it ever waits.
type glance struct{ word atomic.Int64 }

func (g *glance) set(state State, phase int, step int64) {
	g.word.Store(step<<16 | int64(phase&0xff)<<8 | int64(state))
}

func (g *glance) get() (state State, phase int, step int64) {
	w := g.word.Load()
	return State(w & 0xff), int(w >> 8 & 0xff), w >> 16
}

// shownStep is the step of a batch as people count it.
func (b *Batch) shownStep() int64 {
	if b.Eval {
		return 0
	}
	return b.Step + 1
}

// Look returns what the slots hold now. It never waits, and nothing waits for it. It is safe for concurrent use.
func (p *Pipeline) Look() Look {
	l := Look{Ring: make([]RingLook, len(p.glances)), Device: make([]DeviceLook, len(p.slots))}
	for i := range p.glances {
		r := &l.Ring[i]
		r.State, r.Phase, r.Step = p.glances[i].get()
	}
	for i := range p.slots {
		l.Device[i].State, _, l.Device[i].Step = p.slots[i].glance.get()
	}
	return l
}
