package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// WallTime says where the wall time of a process went, in seconds. The parts add up to it.
type WallTime struct {
	// Start is the time before the first step was worked on, End that after the last one, without the other parts.
	Start float64 `json:"start"`
	// Training is the time of steps, with their waits.
	Training float64 `json:"training"`
	// Evaluation, Speaking and Saving are what training waits for: evaluations, the sentences of --samples,
	// checkpoints.
	Evaluation float64 `json:"evaluation"`
	Speaking   float64 `json:"speaking"`
	Saving     float64 `json:"saving"`
	End        float64 `json:"end"`
}

// walltime sums up the works of a process by phase.
type walltime struct {
	training, ending time.Time // when the phases began; zero before
	works            map[event.Task]time.Duration
	within           [3]time.Duration // of works before training, in it, and after
}

// at is the index of the present phase.
func (w *walltime) at() int {
	switch {
	case !w.ending.IsZero():
		return 2
	case !w.training.IsZero():
		return 1
	}
	return 0
}

func (w *walltime) phase(p *event.Phase) {
	switch p.Phase {
	case event.Training:
		w.training = p.At
	case event.Ending:
		w.ending = p.At
	}
}

// work counts a work that has ended and has a part of its own; others are part of their phase.
func (w *walltime) work(e *event.Work) {
	switch e.Task {
	case event.Evaluating, event.Speaking, event.Saving:
	default:
		return
	}
	if !e.Ended {
		return
	}
	if w.works == nil {
		w.works = map[event.Task]time.Duration{}
	}
	w.works[e.Task] += e.Time
	w.within[w.at()] += e.Time
}

// since returns the parts of the wall time since a moment.
func (w *walltime) since(began time.Time, wall time.Duration) WallTime {
	end := began.Add(wall)
	trained, ended := w.training, w.ending
	if ended.IsZero() {
		ended = end
	}
	if trained.IsZero() {
		trained = ended
	}
	part := func(phase int, from, to time.Time) float64 { return max(0, to.Sub(from)-w.within[phase]).Seconds() }
	return WallTime{
		Start: part(0, began, trained), Training: part(1, trained, ended), End: part(2, ended, end),
		Evaluation: w.works[event.Evaluating].Seconds(), Speaking: w.works[event.Speaking].Seconds(),
		Saving: w.works[event.Saving].Seconds(),
	}
}

// String lists the parts that took time.
func (w WallTime) String() string {
	var parts []string
	for _, p := range []struct {
		name string
		s    float64
	}{
		{"start", w.Start}, {"training", w.Training}, {"evaluation", w.Evaluation}, {"speaking", w.Speaking},
		{"saving", w.Saving}, {"end", w.End},
	} {
		if d := time.Duration(p.s * float64(time.Second)); d >= time.Millisecond {
			parts = append(parts, fmt.Sprintf("%s %s", p.name, units.Duration(d)))
		}
	}
	return strings.Join(parts, ", ")
}
