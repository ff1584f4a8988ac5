package adapt

// Batch has the times of a batch, in seconds.
type Batch struct {
	// Train is a time that the trainer took for a batch, without its wait for the next one; 0 if that is unknown.
	Train float64
	// Work is the time that the phases of the pipeline worked on the batch.
	Work float64
	// Apart is the time between the moments at which the batch before and this one were READY. Held says that the
	// pipeline was held back meanwhile: no device slot was free.
	Apart float64
	Held  bool
}

// Measured is what a pipeline has measured of its last batches.
type Measured struct {
	// Train is the trainer's own time for a batch, without its waits for batches.
	Train Times
	// Ready is the time between two READY batches, in the order of the plan, of a pipeline that nothing holds back.
	Ready Times
	// Work is the mean time, in seconds, that the phases work on a batch, and Queue that it waits for its turn in them.
	Work, Queue float64
	// Held says that all device slots had batches whenever another one was READY, since the measurement before.
	Held bool
	// Cores is the share of the time of all cores that the run took with its plugins; 0 if it is unknown.
	Cores float64
}

const (
	kept   = 256 // batches that Recent keeps
	fewest = 16  // times from which a mean and a variance are used
	unheld = 32  // last batches that were not held back, from which the speed of the pipeline follows
	// pause is how many times the mean a time of the trainer is that is left out: the run has saved a checkpoint, or
	// spoken, and the ring was filled meanwhile.
	pause = 8
)

// Recent keeps the times of the last 256 batches. The zero value is empty.
type Recent struct {
	batches []Batch
	// speed is the time between READY batches while nothing held the pipeline back, divided by the work on them. It is
	// 1 if the pipeline works on one batch at a time, and 0 if it is unknown.
	speed float64
	fresh int // batches since the last measurement
}

// Add adds a batch. Batches come in the order of the plan.
func (r *Recent) Add(b Batch) {
	if len(r.batches) == kept {
		copy(r.batches, r.batches[1:])
		r.batches = r.batches[:kept-1]
	}
	r.batches = append(r.batches, b)
	r.fresh++
}

// Fresh is the number of batches since the last call of Measure.
func (r *Recent) Fresh() int { return r.fresh }

// Forget makes the speed of the pipeline unknown, because it has changed.
func (r *Recent) Forget() {
	r.speed = 0
	for i := range r.batches {
		r.batches[i].Held = true
	}
}

// Measure describes the batches. queue is the time that a batch waits for its turn. The time between batches during
// which the pipeline was held back says nothing about its speed. It is replaced by the one that would follow from the
// work on the batch and the speed of the last batches that were not held back.
func (r *Recent) Measure(queue float64) Measured {
	m := Measured{Queue: queue, Held: true}
	var train []float64
	free, apart, work := 0, 0.0, 0.0
	for i := len(r.batches) - 1; i >= 0; i-- {
		b := r.batches[i]
		m.Work += b.Work / float64(len(r.batches))
		if !b.Held && free < unheld {
			free, apart, work = free+1, apart+b.Apart, work+b.Work
		}
		m.Held = m.Held && (b.Held || i < len(r.batches)-r.fresh)
	}
	if free >= fewest && work > 0 {
		r.speed = apart / work
	}
	var ready []float64
	for _, b := range r.batches {
		if b.Train > 0 {
			train = append(train, b.Train)
		}
		if b.Held {
			b.Apart = b.Work * r.speed
		}
		ready = append(ready, b.Apart)
	}
	m.Train = TimesOf(withoutPauses(train))
	if r.speed > 0 {
		m.Ready = TimesOf(ready)
	}
	r.fresh = 0
	return m
}

func withoutPauses(train []float64) []float64 {
	mean, _ := moments(train)
	var all []float64
	for _, t := range train {
		if t <= pause*mean {
			all = append(all, t)
		}
	}
	return all
}

// known reports whether there are enough times for Need.
func (m *Measured) known() bool {
	return m.Train.N >= fewest && m.Ready.N >= fewest && m.Ready.Mean > 0
}

// slower is the share of the pipeline's time for a batch, the trainer's below which the pipeline limits the run.
const slower = 0.95

// limits reports whether the pipeline is known to limit the run.
func (m *Measured) limits() bool { return m.known() && m.Train.Mean < slower*m.Ready.Mean }
