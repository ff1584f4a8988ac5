package speech

import (
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/host/train"
)

// judged is the measure of --best-by.
type judged struct {
	name   string // "" for the loss
	spoken string // of speech, without the prefix
	metric int    // of an evaluation
}

func newJudged(p *plan.Plan) judged {
	j := judged{name: p.BestBy()}
	if measure, ok := strings.CutPrefix(j.name, report.BySpoken); ok {
		j.spoken = measure
	} else {
		j.metric = slices.Index(p.Bundle.Manifest.Metrics(), j.name)
	}
	return j
}

// judge has the loop compare evaluations by a measure of their speech, which is spoken for that before the event
// of the evaluation, or by a metric. best is that of a resumed run: the checkpoint knows its step and its loss alone.
func (s *Speech) judge(to *train.Loop, evaluations *report.Evaluations) error {
	if s.by.name == "" {
		return nil
	}
	to.Policy.Judge = func(e *event.Evaluation) float64 {
		if s.by.spoken == "" {
			return e.Metrics[s.by.metric]
		}
		s.spoken = s.speaker.Speak(e.Step)
		return report.Judge(s.spoken, s.by.spoken)
	}
	best := to.Progress.Best
	if best == nil {
		return nil
	}
	best.Value = math.NaN()
	if s.by.spoken != "" {
		best.Value = report.Judge(s.speaker.Evaluation(best.Step), s.by.spoken)
	} else if e := evaluations.At(best.Step); e != nil {
		if v, ok := e.Metrics[s.by.name]; ok {
			best.Value = float64(v)
		}
	}
	if math.IsNaN(best.Value) { // its lines are gone: the next evaluation is better
		best.Value = math.Inf(1)
	}
	bits, err := samples.FromLead(s.ranks, math.Float64bits(best.Value)) // the lines of others may end before
	best.Value = math.Float64frombits(bits)
	return err
}

// Best describes the best evaluation of the run for the report. Where no evaluation has had the measure of --best-by,
// it has that name alone. By the loss, it is nil without one.
func (s *Speech) Best(best *train.Best) *report.Best {
	by := ""
	if s != nil {
		by = s.by.name
	}
	switch {
	case best == nil && by == "":
		return nil
	case best == nil:
		return &report.Best{Loss: report.Float(math.NaN()), By: by}
	}
	out := &report.Best{Step: best.Step, Loss: report.Float(best.Loss), By: by}
	if by == "" {
		return out
	}
	value := report.Float(best.Value)
	if s.by.spoken != "" { // as it is, and not as it is judged
		mean, ok := samples.Mean(s.speaker.Evaluation(best.Step), s.by.spoken)
		if !ok { // another rank than the first, which has no lines of before
			return out
		}
		value = report.Float(mean)
	}
	if !math.IsInf(float64(value), 0) {
		out.Value = &value
	}
	return out
}
