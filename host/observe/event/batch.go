package event

// batch keeps events in their order. It copies steps into memory that it reuses, because the trainer overwrites them.
type batch struct {
	events []Event
	steps  []*Step // copies; the first of them, as many as used, are in events
	used   int
}

func (b *batch) add(e Event) {
	switch v := e.(type) {
	case *Step:
		if b.used == len(b.steps) {
			b.steps = append(b.steps, new(Step))
		}
		kept := b.steps[b.used]
		b.used++
		v.copyTo(kept)
		e = kept
	case *Evaluation:
		e = v.clone()
	}
	b.events = append(b.events, e)
}

func (b *batch) reset() {
	clear(b.events) // for the garbage collector
	b.events, b.used = b.events[:0], 0
}
