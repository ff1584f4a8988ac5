package record

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// maxByName bounds the name of a measure, in bytes.
const maxByName = 80

// choice says which evaluation of a run is the best: that of its report, or, in a run without one, the one that the run
// would choose by its --best-by.
type choice struct {
	known *report.Best  // of a report
	step  int64         // of the best, -1 if the lines of the evaluations say it
	by    string        // the loss, a metric, or a measure of speech
	mean  *report.Float // of that measure
}

// choose reads what the choice needs. rep is nil if there is no report of the last step. problem is what was left out
// of the lines about speech, if they were read.
func choose(run files.Path, rep *report.Report, settings []Setting) (c choice, problem string) {
	if rep != nil && rep.Evaluation != nil {
		best := rep.Evaluation.Best
		best.By = visible.Short(best.By, maxByName)
		if best.Step > 0 && (best.Value != nil || !math.IsNaN(float64(best.Loss))) {
			return choice{known: &best, step: best.Step}, ""
		}
	}
	by, _ := lookup(settings, "best-by")
	c = choice{step: -1, by: cmp.Or(visible.Short(by, maxByName), report.ByLoss)}
	if measure, ok := strings.CutPrefix(c.by, report.BySpoken); ok {
		var mean float64
		c.step, mean, problem = bestSpoken(run.Join(rundir.SpokenFile), measure)
		c.mean = new(report.Float(mean))
	}
	return c, problem
}

// value is lower the better an evaluation is. It is NaN for one that is never the best.
func (c *choice) value(e *Evaluation) float64 {
	switch {
	case c.step == e.Step:
		return 0
	case c.step < 0 && c.by == report.ByLoss:
		return e.Loss
	case c.step < 0:
		for _, m := range e.Metrics {
			if m.Name == c.by {
				return m.Value
			}
		}
	}
	return math.NaN()
}

// of describes the best evaluation, of which e is the line, or nil if there is none; nil without a best one.
func (c *choice) of(e *Evaluation) *report.Best {
	switch {
	case c.known != nil:
		return c.known
	case e == nil:
		return nil
	case c.by == report.ByLoss:
		return &report.Best{Step: e.Step, Loss: report.Float(e.Loss)}
	case c.mean == nil:
		return &report.Best{Step: e.Step, Loss: report.Float(e.Loss), By: c.by, Value: new(report.Float(c.value(e)))}
	}
	return &report.Best{Step: e.Step, Loss: report.Float(e.Loss), By: c.by, Value: c.mean}
}

// bestSpoken finds the evaluation whose speech is the best by a measure, and the mean of it; step is -1 without one.
func bestSpoken(path files.Path, measure string) (step int64, mean float64, problem string) {
	step = -1
	now, best := &event.Spoken{Step: -1}, math.Inf(1)
	judge := func() {
		if v := report.Judge(now, measure); v < best {
			best, step = v, now.Step
			sum, n := 0.0, 0.0
			for _, u := range now.Utterances {
				for _, m := range u.Measures {
					if m.Name == measure {
						sum, n = sum+m.Value, n+1
					}
				}
			}
			mean = sum / n
		}
	}
	problem = Lines(path, func(line []byte) error {
		var v utteranceLine
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if v.Step == nil {
			return ErrNoStep
		}
		if *v.Step < now.Step {
			return ErrOrder
		}
		if *v.Step != now.Step {
			judge()
			now = &event.Spoken{Step: *v.Step}
		}
		u := event.Utterance{Clip: v.Clip > 0, Ended: v.Ended != nil && *v.Ended}
		for name, number := range v.Measures { // the length, too, tells whether speech is whole
			if n, ok := number.(float64); ok && (name == measure || name == measured.LengthRatio) {
				u.Measures = append(u.Measures, event.Value{Name: name, Value: n})
			}
		}
		if len(now.Utterances) < maxUtterances {
			now.Utterances = append(now.Utterances, u)
		}
		return nil
	})
	judge()
	return step, mean, problem
}
