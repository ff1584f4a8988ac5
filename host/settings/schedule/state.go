package schedule

import "math"

// Waiting counts evaluations without a lower loss.
type Waiting struct {
	// Best is the lowest loss; nil before the first evaluation that has one.
	Best *float64 `json:"best,omitempty"`
	// Evaluations since then.
	Evaluations int `json:"evaluations"`
}

// Observe takes the loss of an evaluation. A loss is lower if it is below the best by more than delta. A loss that is
// not finite is never lower.
func (w *Waiting) Observe(loss, delta float64) {
	if finite := !math.IsNaN(loss) && !math.IsInf(loss, 0); finite && (w.Best == nil || loss < *w.Best-delta) {
		*w = Waiting{Best: &loss}
		return
	}
	w.Evaluations++
}

// State is the state of Plateau, stored in checkpoints.
type State struct {
	// Reductions counts how often the rate was multiplied by Factor.
	Reductions int `json:"reductions"`
	Waiting
}

// Observe takes the loss of the evaluation after step windows, and reports whether it lowers the rate. An evaluation
// during the warm-up can set the best loss, but cannot lower the rate.
func (c Schedule) Observe(s *State, step int64, loss float64) (reduced bool) {
	if c.Name != Plateau {
		return false
	}
	s.Waiting.Observe(loss, 0)
	if step < c.WarmupSteps {
		s.Evaluations = 0
	}
	if s.Evaluations < c.Patience {
		return false
	}
	s.Evaluations = 0
	s.Reductions++
	return true
}

// EarlyStop ends a run whose validation loss does not fall any more. The zero value never does.
type EarlyStop struct {
	// Evaluations in a row without a loss that is lower by more than Delta end the run.
	Evaluations int
	Delta       float64
}

// Observe takes the loss of an evaluation.
func (e EarlyStop) Observe(w *Waiting, loss float64) {
	if e.Evaluations > 0 {
		w.Observe(loss, e.Delta)
	}
}

// Over reports whether the run ends.
func (e EarlyStop) Over(w Waiting) bool { return e.Evaluations > 0 && w.Evaluations >= e.Evaluations }
