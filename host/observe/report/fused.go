package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
)

// Fused describes how the regions of a graph run as kernels.
type Fused struct {
	// Kernels is the number of kernels of the largest bucket.
	Kernels int `json:"kernels"`
	// ArenaBytes is the planned size of ONNX Runtime's arena for training and evaluation of the largest bucket.
	ArenaBytes int64 `json:"arena_bytes"`
	// Distances are the largest differences from the results of the graph as exported, by bucket, relative to the norm
	// of a result.
	Distances []Float `json:"distances"`
	// Roundings are how far other roundings move the results of the graph as exported, by bucket; 0 where they were not
	// measured.
	Roundings []Float `json:"roundings"`
	// Left says why regions of the largest bucket have no kernel.
	Left []string `json:"left"`
	// Refused says, by bucket, which convolutions cuDNN does not compute, and why. Their windows are in memory, or the
	// gradients of the windows.
	Refused []string `json:"refused"`
	// UnfusedBytes is how much more a step of the largest bucket moves through memory because regions run without a
	// kernel: each of their nodes reads its operands and writes its results.
	UnfusedBytes int64 `json:"unfused_bytes"`
	// Faulty names the regions whose kernels cannot be compiled or launched, or gave other results than the graph as
	// exported, each with the reason. They run without them.
	Faulty []string `json:"faulty"`
	// AsExported names the buckets whose fused graph gave other results than the graph as exported, although each of
	// its kernels is right, with the difference. They run as exported.
	AsExported []string `json:"as_exported"`
	// Predicted is what a step of the largest bucket is expected to take; nil for a GPU without figures.
	Predicted *cost.Prediction `json:"predicted,omitempty"`
	// Unproved names the losses, metrics, gradients and regions that say nothing of the kernels, because in the graph
	// as exported, too, their results are zero, not finite or mostly roundings.
	Unproved []string `json:"unproved"`

	// How long the parts took, in seconds.
	PlanS    float64 `json:"plan_s"`
	CompileS float64 `json:"compile_s"`
	OpenS    float64 `json:"open_s"`
	ProofS   float64 `json:"proof_s"`
}

func (f *Fused) String() string {
	distance := 0.0
	for _, d := range f.Distances {
		distance = max(distance, float64(d))
	}
	parts := []string{fmt.Sprintf("%s, within %.1g of the graph as exported", units.Count(f.Kernels, "kernel"),
		distance)}
	if f.Predicted != nil {
		parts = append(parts, fmt.Sprintf("a step of the largest bucket is predicted to take %s",
			milliseconds(f.Predicted.MS)))
	}
	if n := len(f.Left); n > 0 {
		parts = append(parts, units.Count(n, "region")+" without a kernel")
	}
	if n := len(f.Refused); n > 0 {
		parts = append(parts, fmt.Sprintf("%s without cuDNN, with windows in memory, such as %s",
			units.Count(n, "convolution"), f.Refused[n-1]))
	}
	if n := len(f.Faulty); n > 0 {
		parts = append(parts, units.Count(n, "faulty kernel")+" not used")
	}
	if n := len(f.AsExported); n > 0 {
		parts = append(parts, units.Count(n, "bucket")+" as exported, since the proof failed")
	}
	if f.UnfusedBytes > 0 {
		parts = append(parts, fmt.Sprintf("a step moves %s more through memory because of that",
			units.Size(f.UnfusedBytes)))
	}
	if n := len(f.Unproved); n > 0 {
		list := f.Unproved[:min(n, 3)]
		if n > len(list) {
			list = append(slices.Clone(list), fmt.Sprintf("%d more", n-len(list)))
		}
		parts = append(parts, fmt.Sprintf("%s not proved, since zero, not finite or mostly roundings: %s",
			units.Count(n, "result"), strings.Join(list, ", ")))
	}
	return strings.Join(parts, "; ")
}

// fused says how the graphs run on a GPU, and which have one thread on the CPU.
func (t *table) fused(graphs []Graph) {
	for _, g := range graphs {
		if g.OneThread != "" {
			t.row("one thread", fmt.Sprintf("%s, %s: --deterministic, since more could have other bits because of %s",
				g.Use, g.File, g.OneThread))
		}
		of := g.Player
		if g.Use == Evaluating {
			of = Evaluating
		}
		if of != "" {
			of += ": "
		}
		switch {
		case g.Fused != nil:
			t.row("fused graph", of+g.Fused.String())
		case g.Unfused != "":
			t.row("fused graph", of+"none: "+g.Unfused)
		}
	}
}
