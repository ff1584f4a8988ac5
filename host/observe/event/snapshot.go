package event

import (
	"math"
	"slices"
	"sync"
)

// Snapshot is the progress of a run, for a progress bar, a web page or a metrics endpoint. It is a copy.
type Snapshot struct {
	Run   Start
	Phase RunPhase
	// Step is the number of completed steps, including those before a resume. The next fields are of the last one.
	Step  int64
	Epoch int
	// Loss is NaN in a skipped step, and Metrics are as many as Run.Metrics or none before the first step.
	Loss         float64
	Metrics      []float64
	LR, GradNorm float64
	Speed
	// Evaluation and Checkpoint are the last ones of this process, nil before the first.
	Evaluation *Evaluation
	Checkpoint *Checkpoint
	// Work is under way besides the steps; nil for none.
	Work *Work
	// Memory is the last measured memory use of each role on its GPU; empty on the CPU.
	Memory []Memory
	// Warnings counts the events of type Warning.
	Warnings int
	// Outcome is the outcome of training; empty until it ends.
	Outcome string
}

// state collects the values of a Snapshot.
type state struct {
	mu   sync.Mutex // guards what follows
	at   Snapshot   // without its Speed
	rate Rate
}

// clone copies everything that take changes.
func (s *state) clone() *state {
	c := &state{at: s.at, rate: s.rate}
	c.at.Metrics, c.at.Memory = slices.Clone(s.at.Metrics), slices.Clone(s.at.Memory)
	return c
}

func (s *state) snapshot() Snapshot {
	s.at.Speed = s.rate.Speed(s.at.Step, s.at.Run.Total)
	return s.at
}

func (s *state) take(e Event) {
	at := &s.at
	switch e := e.(type) {
	case *Start:
		at.Run, at.Step = *e, e.Step
	case *Phase:
		at.Phase = e.Phase
	case *Step:
		at.Step, at.Epoch, at.Loss, at.LR, at.GradNorm = e.Step, e.Epoch, e.Loss, e.LR, e.GradNorm
		at.Metrics = append(at.Metrics[:0], e.Metrics...)
		if e.Skipped {
			at.Loss = math.NaN()
		}
		s.rate.Step(e)
	case *Evaluation:
		at.Evaluation = e.clone()
	case *Work:
		if at.Work = e; e.Ended {
			at.Work = nil
		}
		s.rate.Work(e)
	case *Checkpoint:
		if e.Err == nil {
			at.Checkpoint = e
		}
	case *Memory:
		i := slices.IndexFunc(at.Memory, func(m Memory) bool { return m.Role == e.Role })
		if i < 0 {
			at.Memory = append(at.Memory, *e)
		} else {
			at.Memory[i] = *e
		}
	case *Warning:
		at.Warnings++
	case *Finish:
		at.Outcome = e.Outcome
	}
}
