package event

// batch keeps events in their order. Steps are copied into memory that the next batch uses again: who trains overwrites them.
type batch struct {
	events []Event
	steps  []*Step // copies; the first used of them stand in events
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
	clear(b.events) // lets go of what they point to
	b.events, b.used = b.events[:0], 0
}
