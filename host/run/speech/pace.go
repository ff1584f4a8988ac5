package speech

import "time"

// share is how much of the training time speaking may take if the user has not asked for it, as a divisor.
const share = 10

// pace decides which evaluations of a run are spoken. A run that evaluates often would speak for longer than it trains.
// It depends on the clock, so nothing of the training may depend on it.
type pace struct {
	unasked      bool          // the user has not asked for the clips, and there are no sentences
	trained      time.Duration // the steps of this process, with their waits
	spoken, last time.Duration // all evaluations of this process that spoke, and the last one
	begun        bool          // one has
	skipped      int           // evaluations
}

// spoke counts the time of an evaluation that has spoken.
func (p *pace) spoke(took time.Duration) {
	p.spoken, p.last, p.begun = p.spoken+took, took, true
}

// due reports whether an evaluation is spoken: the first one of a process, the last one of the run, and those after
// which speaking will have taken at most a share of the training, if they take as long as the last one. The best
// one is not known before the end, while each one of a loss that falls is the best so far.
func (p *pace) due(final bool) bool {
	if final || !p.begun || p.spoken+p.last <= p.trained/share {
		return true
	}
	p.skipped++
	return false
}
