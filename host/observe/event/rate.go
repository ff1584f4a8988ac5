package event

import "time"

// Rate measures the speed of a run by the durations of its steps. It leaves out the first step of a process, which
// waits for the pipeline to fill. The zero value has seen no step.
type Rate struct {
	started    bool
	steps      int64
	time, work time.Duration
	recent     struct{ steps, time, wait float64 }
}

// Speed is the speed of a run. It is 0 until the second step of a process.
type Speed struct {
	// StepsPerSecond and InputStall (the share of time in which the trainer waits for a batch) are of about the last 20
	// steps.
	StepsPerSecond, InputStall float64
	// Left is the time to the end, 0 if it is not known.
	Left time.Duration
}

// recall is the weight that earlier steps keep with each new step. So the recent speed is that of about 20 steps.
const recall = 0.95

// Step counts a step.
func (r *Rate) Step(s *Step) {
	if !r.started {
		r.started = true
		return
	}
	r.steps++
	r.time += s.Time
	n := &r.recent
	n.steps, n.time, n.wait = recall*n.steps+1, recall*n.time+s.Time.Seconds(), recall*n.wait+s.InputWait.Seconds()
}

// Work counts the time of an evaluation and of its sentences. That of a checkpoint is part of the next step.
func (r *Rate) Work(w *Work) {
	if r.started && w.Ended && (w.Task == Evaluating || w.Task == Speaking) {
		r.work += w.Time
	}
}

// Speed returns the speed after a step of a run with total steps; 0 means an unknown number. It assumes that
// evaluations stay as frequent as before.
func (r *Rate) Speed(step, total int64) Speed {
	var s Speed
	if n := &r.recent; n.time > 0 {
		s.StepsPerSecond, s.InputStall = n.steps/n.time, n.wait/n.time
	}
	if total > step && r.steps > 0 {
		s.Left = time.Duration(float64(r.time+r.work) / float64(r.steps) * float64(total-step))
	}
	return s
}
