package pipeline

import "time"

// Tracer gets the events of the pipeline, for a timeline. All goroutines of the pipeline and the trainer's goroutine
// call it, possibly at the same time. A call blocks its caller. Pointers are valid until the call returns.
type Tracer interface {
	// Worked reports that a phase, an index into Stats.Phases, has worked on a batch, also if it failed. place is the
	// worker in decode, the device slot in transfer, and -1 in a stage. busy is the time in which a stage worked,
	// without the wait for its turn; in other phases it is the whole time.
	Worked(phase, place int, b *Batch, began, ended time.Time, busy time.Duration)
	// Ring reports a new state of a ring slot: Preparing from its decode on, and Ready until it is copied. It never
	// becomes Training. A batch that must be rebuilt goes back to Preparing.
	Ring(slot int, from, to State)
	// Moved reports a new state of a device slot. Its Batch is its content or, for Preparing, its previous content.
	Moved(d *DeviceSlot, from, to State)
}

func (p *Pipeline) worked(phase, place int, b *Batch, began, ended time.Time, busy time.Duration) {
	if p.cfg.Tracer != nil {
		p.cfg.Tracer.Worked(phase, place, b, began, ended, busy)
	}
}

func (p *Pipeline) ring(slot int, from, to State) {
	if p.cfg.Tracer != nil {
		p.cfg.Tracer.Ring(slot, from, to)
	}
}

// move advances a device slot, which the caller owns, by one state.
func (p *Pipeline) move(d *DeviceSlot, from, to State) {
	d.move(from, to)
	step := int64(0) // of what the slot holds
	if to == Ready || to == Training {
		step = d.Batch.shownStep()
	}
	d.glance.set(to, 0, step)
	if p.cfg.Tracer != nil {
		p.cfg.Tracer.Moved(d, from, to)
	}
}
