package event

import (
	"math"
	"slices"
	"sync"
)

// Snapshot is where a run stands, for whoever asks: a progress bar, a page, a metrics endpoint. It is a copy.
type Snapshot struct {
	Run   Start
	Phase RunPhase
	// Step is the number of steps that are over, those before a resume included. What follows is of the last of them.
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
	// Memory is what each role used last of its GPU; none on the CPU.
	Memory []Memory
	// Warnings counts the lines that a person is to read.
	Warnings int
	// Outcome is how training ended; empty before.
	Outcome string
}

// state is what a Snapshot is made of.
type state struct {
	mu   sync.Mutex // guards what follows
	at   Snapshot   // but for its Speed
	rate Rate
}

// clone copies what take changes.
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
		s.rate.Evaluation(e)
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
