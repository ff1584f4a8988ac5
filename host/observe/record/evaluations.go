package record

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const (
	maxEvaluations = 4096
	maxMetrics     = 64 // of an evaluation
)

// Evaluation is a line of eval.jsonl.
type Evaluation struct {
	Step    int64
	Loss    float64 // NaN if it is not finite
	Samples int64
	Ms      float64
	Metrics []Value // in the order of their names
}

// Value is a number with its name.
type Value struct {
	Name  string
	Value float64
}

// Evaluations are those of a run: the first, the best and the last, and at most some thousand of the others.
type Evaluations struct {
	Count int
	All   []Evaluation
	// Best is the line of the best one, as the run has chosen it; nil without one.
	Best *Evaluation
}

// notMetrics are the keys of eval.jsonl that are no metric.
var notMetrics = []string{"step", "loss", "samples", "eval_ms"}

func readEvaluations(path files.Path, c *choice) (e Evaluations, problem string) {
	best := math.Inf(1)
	every := 1 // of the evaluations, this one is kept
	problem = Lines(path, func(line []byte) error {
		v, err := ReadEvaluation(line)
		if err != nil {
			return err
		}
		if n := len(e.All); n > 0 && v.Step <= e.All[n-1].Step {
			return ErrOrder
		}
		e.Count++
		if value := c.value(&v); value < best {
			best, e.Best = value, &v
		}
		// The last one is always there. It makes room for the next one unless it is one of those that stay.
		if n := len(e.All); n > 1 && (e.Count-2)%every != 0 {
			e.All[n-1] = v
			return nil
		}
		if e.All = append(e.All, v); len(e.All) > maxEvaluations {
			for i := range maxEvaluations / 2 {
				e.All[i] = e.All[2*i]
			}
			e.All, every = append(e.All[:maxEvaluations/2], v), 2*every
		}
		return nil
	})
	return e, problem
}

// ReadEvaluation reads a line of eval.jsonl.
func ReadEvaluation(line []byte) (Evaluation, error) {
	var fixed struct {
		Step    *int64
		Loss    *float64
		Samples int64
		EvalMs  float64 `json:"eval_ms"`
	}
	if err := json.Unmarshal(line, &fixed); err != nil {
		return Evaluation{}, err
	}
	if fixed.Step == nil || *fixed.Step < 0 {
		return Evaluation{}, ErrNoStep
	}
	v := Evaluation{Step: *fixed.Step, Loss: value(fixed.Loss), Samples: fixed.Samples, Ms: fixed.EvalMs}
	var all map[string]any
	if err := json.Unmarshal(line, &all); err != nil {
		return Evaluation{}, err
	}
	for name, number := range all {
		if n, ok := number.(float64); ok && !slices.Contains(notMetrics, name) {
			v.Metrics = append(v.Metrics, Value{name, n})
		}
	}
	v.Metrics = sorted(v.Metrics)
	return v, nil
}

// sorted puts values in the order of their names, and leaves out those that are too many.
func sorted(values []Value) []Value {
	slices.SortFunc(values, func(a, b Value) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return values[:min(len(values), maxMetrics)]
}

// At returns the last evaluation at or before a step, nil if there is none.
func (e *Evaluations) At(step int64) *Evaluation {
	for i := len(e.All) - 1; i >= 0; i-- {
		if e.All[i].Step <= step {
			return &e.All[i]
		}
	}
	return nil
}
