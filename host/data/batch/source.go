package batch

import (
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// Source turns the data plan into the sequence of all batches of a run: accumulation windows, and after some of them
// the batches of an evaluation. It is a pure function of its fields, so a resumed run continues the sequence of the
// interrupted run.
type Source struct {
	Train, Val *dataset.Plan // Val may be nil
	Accumulate int
	EvalEvery  int64 // steps; 0: at the end of each epoch
	Epochs     int   // 0: no bound, then MaxSteps is one
	MaxSteps   int64 // 0: no bound
	Seed       int64 // of the run
	// World selects the rows of Train's batches that this process computes. Batch i of Val is computed by rank i mod
	// Size; a rank that has one batch less than others gets an empty one.
	World world.World

	epoch, index int
	step         int64
	micro        int
	evalIndex    int // of the next evaluation batch; -1 outside an evaluation
	// extra counts the steps that the run has made beyond those of its epochs, as they are now: it has begun an epoch
	// again, or its epochs had more steps. It may be negative.
	extra int64
}

// Start continues after p. If an evaluation was due there and has not been done, it comes first.
func (s *Source) Start(p pipeline.Position) {
	s.step, s.epoch, s.index, s.evalIndex = p.Step, p.Epoch, p.Batch, -1
	if s.index >= s.Train.Batches() {
		s.epoch, s.index = s.epoch+1, 0
	}
	left := int64((s.Train.Batches() - s.index + s.Accumulate - 1) / s.Accumulate) // steps of the epoch
	s.extra = s.step + left - int64(s.epoch+1)*s.StepsPerEpoch()
	if p.EvaluatedStep < p.Step && s.due() {
		s.evalIndex = 0
	}
}

// StepsPerEpoch counts windows. They never cross an epoch, so its last one may be short.
func (s *Source) StepsPerEpoch() int64 {
	return int64((s.Train.Batches() + s.Accumulate - 1) / s.Accumulate)
}

// Total is the number of steps of the whole run.
func (s *Source) Total() int64 {
	n := int64(s.Epochs)*s.StepsPerEpoch() + s.extra
	switch {
	case s.Epochs == 0:
		return s.MaxSteps
	case s.MaxSteps > 0:
		return min(n, s.MaxSteps)
	}
	return n
}

// Done reports whether neither a step nor an evaluation is left.
func (s *Source) Done() bool { return s.evalIndex < 0 && s.step >= s.Total() }

// due reports whether an evaluation follows the windows so far. The run's end always has one.
func (s *Source) due() bool {
	return s.Val != nil && s.step > 0 && (s.step == s.Total() || s.Evaluated(s.step))
}

// Evaluated reports whether an evaluation follows so many steps in a run of any length.
func (s *Source) Evaluated(step int64) bool {
	every := s.EvalEvery
	if every == 0 {
		every = s.StepsPerEpoch()
	}
	return step%every == 0
}

// Next implements pipeline.Source.
func (s *Source) Next(b *pipeline.Batch) bool {
	if s.evalIndex >= 0 {
		s.evaluation(b)
		s.evalIndex++
		if b.Last {
			s.evalIndex = -1
		}
		return true
	}
	if s.step >= s.Total() {
		return false
	}
	n := s.Train.Batches()
	fill(b, s.Train.Epoch(s.epoch).Batch(s.index), s.World)
	b.Eval, b.Step, b.Micro, b.Seed = false, s.step, s.micro, dataset.GraphSeed(s.Seed, s.step, s.World.Micro(s.micro))
	s.micro++
	s.index++
	b.Last = s.micro == s.Accumulate || s.index == n
	if s.index == n {
		s.epoch, s.index = s.epoch+1, 0
	}
	if b.Last {
		s.step++
		s.micro = 0
		if s.due() {
			s.evalIndex = 0
		}
	}
	return true
}

// evalStep is the step that stages get in an evaluation.
const evalStep = -1

// evaluation makes the rank's next batch of an evaluation. It counts the batches of the rank.
func (s *Source) evaluation(b *pipeline.Batch) {
	e := s.Val.Epoch(0)
	size := s.World.BatchSize(1) // ranks
	if at := s.evalIndex*size + s.World.Rank; at < e.Len() {
		fill(b, e.Batch(at), world.World{})
	} else {
		fill(b, e.Batch(e.Len()-1), world.World{})
		for i := range b.Rows {
			b.Rows[i] = -1
		}
	}
	b.Index = s.evalIndex
	b.Eval, b.Step, b.Micro, b.Last = true, evalStep, s.evalIndex, s.evalIndex+1 == s.World.Of(e.Len())
}

func fill(b *pipeline.Batch, from dataset.Batch, w world.World) {
	b.Epoch, b.Index, b.Bucket = from.Epoch, from.Index, from.Bucket
	b.Rows = w.Rows(b.Rows[:0], from.Rows)
}
