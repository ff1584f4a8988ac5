package pipeline

import "time"

// Observer is told what the pipeline does, for a timeline. Calls come from every goroutine of the pipeline and from the trainer's,
// may overlap, and hold up whoever makes them. What they point to is valid until they return.
type Observer interface {
	// Worked is told that a phase, an index into Stats.Phases, has worked on a batch, also when it failed. place is the worker in
	// decode, the device slot in transfer, and -1 in a stage. busy is the part of the time in which a stage worked, and did not
	// wait for its turn; in the other phases it is all of it.
	Worked(phase, place int, b *Batch, began, ended time.Time, busy time.Duration)
	// Ring is told that a ring slot changes its state, which is Preparing from its decode on and Ready until it is copied. It
	// does not go to Training; a batch that must be built again goes back to Preparing.
	Ring(slot int, from, to State)
	// Moved is told that a device slot changes its state. Its Batch is what it holds or, on its way to Preparing, held.
	Moved(d *DeviceSlot, from, to State)
}

func (p *Pipeline) worked(phase, place int, b *Batch, began, ended time.Time, busy time.Duration) {
	if p.cfg.Observer != nil {
		p.cfg.Observer.Worked(phase, place, b, began, ended, busy)
	}
}

func (p *Pipeline) ring(slot int, from, to State) {
	if p.cfg.Observer != nil {
		p.cfg.Observer.Ring(slot, from, to)
	}
}

// move takes a device slot that the caller owns one state on.
func (p *Pipeline) move(d *DeviceSlot, from, to State) {
	d.move(from, to)
	if p.cfg.Observer != nil {
		p.cfg.Observer.Moved(d, from, to)
	}
}
