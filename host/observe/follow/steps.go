package follow

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

const (
	// maxBins bounds the bins of a curve of steps, maxEvaluationBins those of one of evaluations: 64 bytes each.
	maxBins, maxEvaluationBins = 1 << 15, 4096
	// maxNames bounds the curves of a kind, maxName the name of one, in bytes.
	maxNames, maxName = 32, 64
	// recent is the number of the last steps of which means are kept.
	recent = 50
)

// curves are courses by their names. The zero value is empty.
type curves struct {
	byName map[string]*record.Curve
	most   int
}

// add appends a value. A new name is left out if there are too many.
func (c *curves) add(name []byte, step int64, v float64) {
	curve := c.byName[string(name)]
	if curve == nil {
		if len(c.byName) == maxNames {
			return
		}
		if c.byName == nil {
			c.byName = map[string]*record.Curve{}
		}
		curve = &record.Curve{Most: c.most}
		c.byName[string(name)] = curve
	}
	curve.Add(step, v)
}

// Series is a course in at most as many pieces as were asked for.
type Series struct {
	Name string
	Bins []record.Bin
}

// within returns the courses from one step to another, the loss first and then by their names.
func (c *curves) within(from, to int64, most int) []Series {
	var list []Series
	for name, curve := range c.byName {
		list = append(list, Series{visible.Short(name, maxName), curve.Within(from, to, most)})
	}
	slices.SortFunc(list, func(a, b Series) int {
		if a.Name == "loss" || b.Name == "loss" {
			return cmp.Compare(btoi(b.Name == "loss"), btoi(a.Name == "loss"))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// steps is what metrics.jsonl has.
type steps struct {
	curves
	first, last, skipped int64
	loss                 float64 // of the last step
	best                 float64 // the lowest loss
	bestStep             int64
	ms, wait             [recent]float64 // of the last steps, by step
	n                    int64
	line                 []named // for reuse
}

// named is a number of a line.
type named struct {
	name  []byte // of the line
	value float64
}

// take reads a line of a step.
func (s *steps) take(line []byte) error {
	var step, loss, ms, wait float64 = -1, math.NaN(), 0, 0
	s.line = s.line[:0]
	err := numbers(line, func(name []byte, v float64) {
		switch string(name) {
		case "step":
			step = v
			return
		case "epoch", "bucket": // no curves
			return
		case "loss":
			loss = v
		case "step_ms":
			ms = v
		case "input_wait_ms":
			wait = v
		}
		if len(name) <= maxName {
			s.line = append(s.line, named{name, v})
		}
	})
	switch {
	case err != nil:
		return err
	case !(step >= 0 && step < 1<<53):
		return record.ErrNoStep
	case s.n > 0 && int64(step) <= s.last:
		return record.ErrOrder
	}
	at := int64(step)
	if s.n == 0 {
		s.first, s.best = at, math.Inf(1)
	}
	s.last, s.loss = at, loss
	if math.IsNaN(loss) {
		s.skipped++
	}
	if loss < s.best {
		s.best, s.bestStep = loss, at
	}
	s.ms[s.n%recent], s.wait[s.n%recent] = ms, wait
	cold := s.n == 0 // the first step of a process takes longer
	s.n++
	for _, v := range s.line {
		if !(cold && string(v.name) == "step_ms") {
			s.add(v.name, at, v.value)
		}
	}
	return nil
}

// Now are figures of the last steps.
type Now struct {
	First, Last, Skipped int64
	Loss                 float64 // of the last step, NaN if it was skipped or there is none
	Best                 float64 // the lowest loss, NaN without one
	BestStep             int64
	// StepMs and WaitMs are means of the last 50 steps, without the first one of the run.
	StepMs, WaitMs float64
}

// Now returns figures of the last steps.
func (r *Run) Now() Now {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.steps
	now := Now{First: s.first, Last: s.last, Skipped: s.skipped, Loss: s.loss, Best: s.best, BestStep: s.bestStep}
	if s.n == 0 {
		now.Loss, now.Best = math.NaN(), math.NaN()
	}
	if math.IsInf(now.Best, 0) {
		now.Best = math.NaN()
	}
	from := max(1, s.n-recent)
	for i := from; i < s.n; i++ {
		now.StepMs += s.ms[i%recent] / float64(s.n-from)
		now.WaitMs += s.wait[i%recent] / float64(s.n-from)
	}
	return now
}

// Curves returns what changed from one step to another, both included, in at most so many pieces each: what the steps
// had, what evaluations had, and means of what was spoken at evaluations.
func (r *Run) Curves(from, to int64, most int) (steps, evaluations, speech []Series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps.within(from, to, most), r.evaluations.within(from, to, most), r.speech.means(from, to, most)
}

// Span returns the first and the last step of all curves, 0 without any.
func (r *Run) Span() (first, last int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = math.MaxInt64
	include := func(from, to int64) { first, last = min(first, from), max(last, to) }
	if r.steps.n > 0 {
		include(r.steps.first, r.steps.last)
	}
	if r.evaluations.count > 0 {
		include(r.evaluations.first, r.evaluations.last)
	}
	if spoken := r.speech.steps; len(spoken) > 0 {
		include(spoken[0], spoken[len(spoken)-1])
	}
	return min(first, last), last
}

// evaluations is what eval.jsonl has.
type evaluations struct {
	curves
	first    int64
	last     int64
	best     float64
	bestStep int64
	count    int
}

func (e *evaluations) take(line []byte) error {
	v, err := record.ReadEvaluation(line)
	if err != nil {
		return err
	}
	if e.count > 0 && v.Step <= e.last {
		return record.ErrOrder
	}
	if e.count == 0 {
		e.first, e.best = v.Step, math.Inf(1)
	}
	e.last = v.Step
	e.count++
	if v.Loss < e.best {
		e.best, e.bestStep = v.Loss, v.Step
	}
	e.add([]byte("loss"), v.Step, v.Loss)
	for _, m := range v.Metrics {
		if len(m.Name) <= maxName {
			e.add([]byte(m.Name), v.Step, m.Value)
		}
	}
	return nil
}

// Best returns the step and the loss of the evaluation with the lowest loss, and the number of evaluations. Without a
// finite loss the step is 0 and the loss is NaN.
func (r *Run) Best() (step int64, loss float64, evaluations int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.evaluations
	if loss = e.best; e.count == 0 || math.IsInf(loss, 0) {
		loss = math.NaN()
	}
	return e.bestStep, loss, e.count
}
