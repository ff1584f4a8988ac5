package compare

import (
	"math"

	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// lastLosses is the number of training losses whose mean is a run's loss at a step, as in the report.
const lastLosses = 20

// At is what a run had reached at some point.
type At struct {
	Step     int64        `json:"step"`
	Training report.Float `json:"training"` // the mean of the last 20 losses up to it
	// Validation is that of the last evaluation up to it, after ValidationStep; null without one.
	Validation     report.Float `json:"validation"`
	ValidationStep int64        `json:"validation_step,omitempty"`
}

// atStep is what a run had reached after a step.
func atStep(run *record.Run, step int64) At {
	pieces := run.Steps.Pieces
	end := 0
	for end < len(pieces) && pieces[end].Last <= step {
		end++
	}
	sum, n := 0.0, 0.0
	for i := end - 1; i >= 0 && n < lastLosses; i-- {
		sum, n = sum+pieces[i].Loss, n+pieces[i].Losses
	}
	a := At{Step: step, Training: report.Float(sum / n), Validation: report.Float(math.NaN())}
	if e := run.Evaluations.At(step); e != nil {
		a.Validation, a.ValidationStep = report.Float(e.Loss), e.Step
	}
	return a
}

// stepAfter is the last step that a run had completed after so many milliseconds of steps; 0 for none.
func stepAfter(run *record.Run, ms float64) (step int64) {
	for i := range run.Steps.Pieces {
		p := &run.Steps.Pieces[i]
		if ms -= p.Ms; ms < -1e-6 {
			break
		}
		step = p.Last
	}
	return step
}

// equals are the step that all runs have reached, and the time of the steps of the fastest of them.
func equals(runs []*record.Run) (step int64, ms float64) {
	step, ms = math.MaxInt64, math.Inf(1)
	for _, r := range runs {
		step, ms = min(step, r.Steps.LastStep), min(ms, r.Steps.Sum().Ms)
	}
	if !(ms > 0) || math.IsInf(ms, 0) { // of a stranger
		ms = 0
	}
	return step, ms
}

// commonEvaluation is the last step up to one after which all runs were evaluated; 0 for none.
func commonEvaluation(runs []*record.Run, upTo int64) int64 {
	all := runs[0].Evaluations.All
	for i := len(all) - 1; i >= 0; i-- {
		step := all[i].Step
		common := step <= upTo
		for _, r := range runs[1:] {
			e := r.Evaluations.At(step)
			common = common && e != nil && e.Step == step
		}
		if common {
			return step
		}
	}
	return 0
}
