package dashboard

import (
	"cmp"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/follow"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// badge is the state of a run, one of record.States.
type badge struct {
	Status  string `json:"status"`
	Tone    string `json:"tone"`
	Means   string `json:"means"`
	Running bool   `json:"running"`
}

// badgeOf is the state of a run by what was read of it, and of a run of this process by what it says.
func (r *run) badgeOf(read *follow.Run) badge {
	name := read.Status()
	if r.live != nil {
		if phase := r.live.phase(); phase != event.Ended {
			name = string(cmp.Or(phase, event.Preparing))
		}
	}
	s := record.StateOf(name)
	return badge{s.Name, s.Tone, s.Means, s.Running}
}

// state is a message about a run.
type state struct {
	badge
	Live      bool         `json:"live"`
	Step      int64        `json:"step"`
	Total     int64        `json:"total"` // 0 if it is not known
	Epoch     int          `json:"epoch"`
	Skipped   int64        `json:"skipped"`
	Loss      report.Float `json:"loss"`
	Best      report.Float `json:"best"`
	BestStep  int64        `json:"best_step"`
	StepMs    float64      `json:"step_ms"`
	WaitMs    float64      `json:"wait_ms"`
	PerSecond float64      `json:"per_second"`
	LeftS     float64      `json:"left_s"` // 0 if it is not known
	Work      string       `json:"work"`   // besides the steps
	Warnings  int          `json:"warnings"`
	Unusable  int          `json:"unusable"`

	Evaluations    int          `json:"evaluations"`
	BestEvaluation report.Float `json:"best_evaluation"`
	BestAt         int64        `json:"best_evaluation_step"`

	Outcome  string      `json:"outcome"` // that of the report
	Mark     follow.Mark `json:"mark"`
	Problems []string    `json:"problems"`
}

// stateOf describes a run. at is nil for one of another process.
func (r *run) stateOf(at *event.Snapshot) *state {
	now := r.Now()
	_, warnings := r.Log(0)
	_, unusable := r.Clips(0, 0)
	s := &state{
		badge: r.badgeOf(r.Run), Live: at != nil, Step: now.Last, Skipped: now.Skipped, Loss: report.Float(now.Loss),
		Best: report.Float(now.Best), BestStep: now.BestStep, StepMs: now.StepMs, WaitMs: now.WaitMs,
		Warnings: warnings, Unusable: unusable, Mark: r.Mark(),
	}
	best, loss, count := r.Best()
	s.BestAt, s.BestEvaluation, s.Evaluations = best, report.Float(loss), count
	for _, p := range r.Problems() {
		s.Problems = append(s.Problems, text(p))
	}
	if at == nil {
		s.ended(r)
	} else {
		s.Step, s.Total, s.Epoch, s.Outcome = max(s.Step, at.Step), at.Run.Total, at.Epoch, text(at.Outcome)
		s.PerSecond, s.LeftS = at.StepsPerSecond, at.Left.Seconds()
		if at.Work != nil {
			s.Work = at.Work.String()
		}
	}
	return s
}

// ended fills in what the files of a run that is not of this process say beyond the lines of its steps. Of a run whose
// lines cannot be read, it has the figures of the report and of the evaluations.
func (s *state) ended(r *run) {
	if s.StepMs > 0 {
		s.PerSecond = 1000 / s.StepMs
	}
	if rep := r.Report(); rep != nil {
		s.Outcome = text(rep.Outcome)
		if s.Step == 0 {
			s.Step, s.Skipped, s.Loss, s.Best = rep.Steps, rep.SkippedSteps, rep.Loss.Last, rep.Loss.Best
		}
	}
	if _, last := r.Span(); s.Step == 0 {
		s.Step = last
	}
	// A folder that was put together by hand may have settings of another run.
	if s.Total = r.planned(); s.Step > s.Total {
		s.Total = 0
	}
}
