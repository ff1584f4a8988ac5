package host

import (
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/host/train"
)

// source turns the plan into the one sequence of batches that a run consists of: accumulation windows, and behind some
// of them the batches of an evaluation. It is a pure function of its fields, so a resumed run continues the sequence of the run
// that was interrupted.
type source struct {
	train, val *dataset.Plan // val may be nil
	accumulate int
	evalEvery  int64 // steps; 0: at the end of each epoch
	epochs     int
	maxSteps   int64 // 0: no bound
	seed       int64 // of the run

	epoch, index int
	step         int64
	micro        int
	evalIndex    int // of the next evaluation batch; -1 outside an evaluation
}

// start continues behind p. An evaluation that was due there and has not been made comes first.
func (s *source) start(p train.Progress) {
	s.step, s.epoch, s.index, s.evalIndex = p.Step, p.Epoch, p.Batch, -1
	if s.index >= s.train.Batches() {
		s.epoch, s.index = s.epoch+1, 0
	}
	if p.EvaluatedStep < p.Step && s.due() {
		s.evalIndex = 0
	}
}

// stepsPerEpoch counts windows. They never cross an epoch, so its last one may be short.
func (s *source) stepsPerEpoch() int64 {
	return int64((s.train.Batches() + s.accumulate - 1) / s.accumulate)
}

// total is the number of steps of the whole run.
func (s *source) total() int64 {
	n := int64(s.epochs) * s.stepsPerEpoch()
	if s.maxSteps > 0 {
		n = min(n, s.maxSteps)
	}
	return n
}

// due reports whether an evaluation follows the windows so far. The run's end always has one.
func (s *source) due() bool {
	switch {
	case s.val == nil || s.step == 0:
		return false
	case s.step == s.total():
		return true
	case s.evalEvery > 0:
		return s.step%s.evalEvery == 0
	}
	return s.index == 0
}

// Next implements pipeline.Source.
func (s *source) Next(b *pipeline.Batch) bool {
	if s.evalIndex >= 0 {
		e := s.val.Epoch(0)
		fill(b, e.Batch(s.evalIndex))
		b.Eval, b.Step, b.Micro, b.Last = true, evalStep, s.evalIndex, s.evalIndex == e.Len()-1
		s.evalIndex++
		if b.Last {
			s.evalIndex = -1
		}
		return true
	}
	if s.step >= s.total() {
		return false
	}
	n := s.train.Batches()
	fill(b, s.train.Epoch(s.epoch).Batch(s.index))
	b.Eval, b.Step, b.Micro, b.Seed = false, s.step, s.micro, dataset.GraphSeed(s.seed, s.step, s.micro)
	s.micro++
	s.index++
	b.Last = s.micro == s.accumulate || s.index == n
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

// evalStep is the step that stages are told in an evaluation.
const evalStep = -1

func fill(b *pipeline.Batch, from dataset.Batch) {
	b.Epoch, b.Index, b.Bucket = from.Epoch, from.Index, from.Bucket
	b.Rows = append(b.Rows[:0], from.Rows...)
}
