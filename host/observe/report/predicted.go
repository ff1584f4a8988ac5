package report

import (
	"fmt"
	"strings"
)

// Predicted is what a step of the largest bucket is expected to take on the GPU, by its bytes, operations and launches.
type Predicted struct {
	Card string `json:"card"`
	// MS is the expected time, FloorMS the sum of the floors of all parts.
	MS      float64 `json:"ms"`
	FloorMS float64 `json:"floor_ms"`
	// Launches is the number of kernels and calls of libraries, CUDAGraph whether one launch replays all.
	Launches  int             `json:"launches"`
	CUDAGraph bool            `json:"cuda_graph"`
	Parts     []PredictedPart `json:"parts"`
	// Slow is what takes more than twice its floor and at least 1 % of the step, by the reason.
	Slow []Slow `json:"slow"`
}

// PredictedPart is a part of a step.
type PredictedPart struct {
	Name    string  `json:"name"`
	MS      float64 `json:"ms"`
	FloorMS float64 `json:"floor_ms"`
}

// Slow are the nodes and regions that take more than twice their floor for one reason.
type Slow struct {
	Why     string     `json:"why"`
	Mend    string     `json:"mend"`
	MS      float64    `json:"ms"`
	FloorMS float64    `json:"floor_ms"`
	Small   bool       `json:"small"` // nothing is slow but launching
	Kinds   []SlowKind `json:"kinds"`
}

// SlowKind is a number of equal nodes or regions.
type SlowKind struct {
	What     string   `json:"what"`
	Tensors  []string `json:"tensors"`
	Launches int      `json:"launches"`
	MS       float64  `json:"ms"`
	FloorMS  float64  `json:"floor_ms"`
}

// remedies are the ways to make something faster, in words.
var remedies = map[string]string{
	"nothing":        "no setting mends that",
	"bf16":           "--precision bf16 mends that",
	"bf16 attention": "--attention bf16 mends that",
	"more rows":      "a larger --batch-size uses the GPU better",
	"channels":       "channels that are a multiple of 8 mend that",
	"aligned":        "sides that are a multiple of 8 mend that: of layers, frames or tokens",
	"wider":          "wider layers, or fewer groups, compute more in the same time",
	"head columns":   "heads of 16 to 128 columns, a multiple of 16, mend that",
	"plain scores":   "scores that only the softmax reads, without a trained bias, mend that",
	"no recurrence":  "layers that compute all positions together mend that, such as convolutions or attention",
	"cuda graph":     "--cuda-graphs auto captures a graph of which graph lint finds nothing",
	"report":         "please report the warning of the start",
}

// Remedy says in words what would make something faster.
func Remedy(mend string) string { return remedies[mend] }

const (
	// warnedShare is the part of a step from which on what is slow has a warning.
	warnedShare = 0.1
	warnedSlow  = 2 // reasons that a warning has
)

// Warning names what takes more than twice its floor, if that is more than a tenth of the step; otherwise it is empty.
// Small kernels do not count: a small model, or a small batch, has nothing else.
func (p *Predicted) Warning() string {
	slow, list := 0.0, []string(nil)
	for _, s := range p.Slow {
		if s.Small {
			continue
		}
		slow += s.MS
		if len(list) < warnedSlow {
			list = append(list, fmt.Sprintf("%s in %s: %s; %s", milliseconds(s.MS), s.Kinds[0].short(), s.Why,
				Remedy(s.Mend)))
		}
	}
	if slow <= warnedShare*p.MS {
		return ""
	}
	return fmt.Sprintf("of a predicted step of %s, %s take more than twice their floor: %s", milliseconds(p.MS),
		milliseconds(slow), strings.Join(list, ". "))
}

// short names the first of a kind.
func (k *SlowKind) short() string {
	more := ""
	if n := len(k.Tensors) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return k.Tensors[0] + more
}

func milliseconds(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2g ms", ms)
}
