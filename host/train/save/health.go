package save

import "github.com/xtts-host/xtts-host/host/train/checkpoint"

// health knows which weights of a run were good. A steady step shows that the weights before it were: its loss was
// computed with them. So a checkpoint is good if a steady step came after it. What the update of a step has made of the
// weights, the step after it shows.
type health struct {
	steady int64 // the last steady step
	risen  bool  // a step came after it
	odd    bool  // the last step was not normal
}

// step takes a step.
func (h *health) step(step int64, normal, steady bool) {
	if h.odd, h.risen = !normal, !steady; steady {
		h.steady = step
	}
}

// good returns the last good one of the steps that have checkpoints, in ascending order. -1 and false mean that there
// is none.
func (h *health) good(steps []int64) (step int64, ok bool) {
	step = -1
	for _, s := range steps {
		if s < h.steady {
			step = s
		}
	}
	return step, step >= 0
}

// Evaluated takes an evaluation of the weights after a step whose loss is finite and not far above the best: it shows
// that they are good, as the next step would. While steps are not steady it shows nothing.
func (s *Saver) Evaluated(step int64) {
	if !s.risen {
		s.steady = max(s.steady, step+1)
	}
}

// Good returns the steps of the checkpoints that are known to be good, the newest first.
func (s *Saver) Good() ([]int64, error) {
	steps, err := s.cfg.Store.Steps()
	var good []int64
	for _, step := range steps {
		if step < s.steady {
			good = append([]int64{step}, good...)
		}
	}
	return good, err
}

// Sound loads the first of the checkpoints of some steps that is intact and finite; nil without one. The caller closes
// it.
func (s *Saver) Sound(steps []int64) *checkpoint.Checkpoint { return s.cfg.Store.Sound(steps) }
