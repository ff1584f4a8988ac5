package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/command/bench/pytorch"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// ComparisonVersion is the format version of a comparison.
const ComparisonVersion = 1

// The programs of a comparison.
const (
	Host    = "xtts-host"
	PyTorch = "pytorch"
)

// Comparison compares training steps with those of another program, and is the content of its file. docs/benchmarks.md
// describes it.
type Comparison struct {
	Version    int               `json:"version"`
	Bundle     string            `json:"bundle"`
	Bucket     map[string]int    `json:"bucket"`
	Steps      int               `json:"steps"` // of each measurement
	BatchSizes []int             `json:"batch_sizes"`
	Rounds     int               `json:"rounds"`
	Device     string            `json:"device"` // of the model
	With       map[string]string `json:"with"`   // versions
	PyTorch    pytorch.Head      `json:"pytorch"`
	Rows       []Compared        `json:"rows"`
	Ratios     []Ratio           `json:"ratios"`
	// Interrupted reports that measurements are missing.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Compared is the result of one program with one batch size.
type Compared struct {
	BatchSize int `json:"batch_size"`
	Way
	// Times is the round with the median step.
	Times
	// Loss is that of the first batch with the bundle's weights; null if the dropout of this form cannot be the
	// graph's.
	Loss *float64 `json:"loss"`
	// LossDifference is the difference from PyTorch's loss in f32, relative to that.
	LossDifference *float64     `json:"loss_difference"`
	Rounds         []TimedRound `json:"rounds"`
	// Failed is the reason why there are no figures.
	Failed string `json:"failed,omitempty"`
}

// Way is one way to compute a step.
type Way struct {
	Program string `json:"program"`
	// Precision is f32, tf32 or bf16; of PyTorch also autocast, and there bf16 has all weights in bf16.
	Precision string `json:"precision"`
	// Form is one of PyTorch's: eager, compile, graphs, with -sdpa after it if attention is one function.
	Form string `json:"form,omitempty"`
}

// TimedRound is one measurement.
type TimedRound struct {
	Round int `json:"round"` // counts from 0
	Times
}

// Times are the times of the steps of one measurement.
type Times struct {
	StepMs      report.Distribution `json:"step_ms"`
	GradientsMs report.Distribution `json:"gradients_ms"` // forward and backward
	Memory
	// StartS is the time until PyTorch had compiled and its first steps were over.
	StartS float64 `json:"start_s,omitempty"`
	// Graphs are the training graphs of xtts-host: how they are fused, and what of them is not.
	Graphs []report.Graph `json:"graphs,omitempty"`
	EndToEnd
}

// Memory is the memory of a GPU.
type Memory struct {
	// PeakBytes is the peak of forward and backward passes: weights and their copies, gradients, batches and what is
	// between the nodes. Of xtts-host it is what its buffers and ONNX Runtime's arena have taken; of PyTorch what its
	// tensors take.
	PeakBytes int64 `json:"peak_bytes,omitempty"`
	// ReservedBytes is what PyTorch's allocator has taken for them. Unknown for xtts-host, whose peak it is.
	ReservedBytes int64 `json:"reserved_bytes,omitempty"`
	// OptimizerBytes is the size of the optimizer's moments, which are not in the others.
	OptimizerBytes int64 `json:"optimizer_bytes,omitempty"`
	// ProcessPeakBytes is all that the process takes of the GPU, by the driver. Unknown for PyTorch.
	ProcessPeakBytes int64 `json:"process_peak_bytes,omitempty"`
}

// EndToEnd are steps on batches that are made of audio files during training.
type EndToEnd struct {
	EndToEndMs report.Distribution `json:"end_to_end_ms"`       // with what a step waited for its batch
	StagesOn   string              `json:"stages_on,omitempty"` // "cpu" or "gpu"
	Workers    int                 `json:"workers,omitempty"`   // of PyTorch's DataLoader
	// EndToEndFailed is the reason why there are no such steps.
	EndToEndFailed string `json:"end_to_end_failed,omitempty"`
}

// Ratio is our time divided by that of PyTorch's fastest form of a precision.
type Ratio struct {
	BatchSize int    `json:"batch_size"`
	Precision string `json:"precision"` // of PyTorch
	Host      string `json:"host"`      // our precision
	What      string `json:"what"`      // one of measures
	Best      string `json:"best,omitempty"`
	*Spread
	// Reason says why there is no ratio.
	Reason string `json:"reason,omitempty"`
}

// measures are what is timed: the forward and backward passes, whole steps on batches that are on the device, and steps
// from audio files.
var measures = []string{"gradients", "step", "end_to_end"}

// counterparts has the precisions of PyTorch that each of ours is compared with.
var counterparts = map[string][]string{"f32": {"f32"}, "tf32": {"tf32"}, "bf16": {"autocast", "bf16"}}

// tolerances are the largest relative differences of the losses of equal models, by precision.
var tolerances = map[string]float64{"f32": 1e-4, "tf32": 2e-3, "autocast": 1e-2, "bf16": 1e-2}

// row returns the row of a way, and adds it if it is missing.
func (c *Comparison) row(batch int, w Way) *Compared {
	for i := range c.Rows {
		if row := &c.Rows[i]; row.BatchSize == batch && row.Way == w {
			return row
		}
	}
	c.Rows = append(c.Rows, Compared{BatchSize: batch, Way: w, Rounds: []TimedRound{}})
	return &c.Rows[len(c.Rows)-1]
}

// ways returns the ways to compare in our precisions with forms of PyTorch. Ours come first.
func ways(precisions, forms []string) []Way {
	var all []Way
	for _, p := range precisions {
		all = append(all, Way{Program: Host, Precision: p})
	}
	for _, p := range precisions {
		for _, precision := range counterparts[p] {
			for _, form := range forms {
				all = append(all, Way{PyTorch, precision, form})
			}
		}
	}
	return all
}

// times returns the times of one of the measures.
func (t *Times) times(what string) report.Distribution {
	switch what {
	case "gradients":
		return t.GradientsMs
	case "step":
		return t.StepMs
	}
	return t.EndToEndMs
}

// typical returns the time of a step: the median, but end to end the mean, because a few steps that wait for their
// batch count.
func typical(d report.Distribution, what string) float64 {
	if what == "end_to_end" {
		return d.Mean
	}
	return d.P50
}

// Compare computes each row's figures from its rounds, and the ratios.
func (c *Comparison) Compare(precisions []string) {
	for i := range c.Rows {
		row := &c.Rows[i]
		if len(row.Rounds) == 0 {
			continue
		}
		bySpeed := slices.SortedStableFunc(slices.Values(row.Rounds),
			func(a, b TimedRound) int { return cmp.Compare(a.StepMs.P50, b.StepMs.P50) })
		row.Times = bySpeed[(len(bySpeed)-1)/2].Times
	}
	c.Ratios = []Ratio{}
	for _, batch := range c.BatchSizes {
		if !slices.ContainsFunc(c.Rows, func(row Compared) bool { return row.BatchSize == batch }) {
			continue // interrupted before it
		}
		for _, p := range precisions {
			for _, precision := range counterparts[p] {
				for _, what := range measures {
					c.Ratios = append(c.Ratios, c.ratio(batch, p, precision, what))
				}
			}
		}
	}
}

// ratio compares our precision with one of PyTorch.
func (c *Comparison) ratio(batch int, host, precision, what string) Ratio {
	r := Ratio{BatchSize: batch, Precision: precision, Host: host, What: what}
	ours := c.row(batch, Way{Program: Host, Precision: host})
	best := c.best(batch, precision, what)
	switch {
	case len(ours.Rounds) == 0:
		r.Reason = "xtts-host has no figures"
	case what == "end_to_end" && ours.EndToEndFailed != "":
		r.Reason = ours.EndToEndFailed
	case best == nil:
		r.Reason = c.withoutFigures(batch, precision, what)
	case ours.LossDifference == nil || !(*ours.LossDifference <= tolerances[host]):
		r.Best, r.Reason = best.Form, "the losses differ"
	default:
		if r.Best, r.Spread = best.Form, pairs(ours, best, what); r.Spread == nil {
			r.Reason = "no round has figures of both"
		}
	}
	return r
}

// withoutFigures says why PyTorch has no figures in a precision.
func (c *Comparison) withoutFigures(batch int, precision, what string) string {
	const reason = "PyTorch has no figures"
	for i := range c.Rows {
		row := &c.Rows[i]
		if what == "end_to_end" && row.BatchSize == batch && row.Precision == precision && row.Program == PyTorch &&
			row.EndToEndFailed != "" {
			return reason + ": " + row.EndToEndFailed
		}
	}
	return reason
}

// best returns the fastest form of PyTorch in a precision, or nil. A form with another loss does not count.
func (c *Comparison) best(batch int, precision, what string) *Compared {
	var best *Compared
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.BatchSize != batch || row.Program != PyTorch || row.Precision != precision || len(row.Rounds) == 0 ||
			row.Failed != "" || row.median(what) == 0 {
			continue
		}
		if best == nil || row.median(what) < best.median(what) {
			best = row
		}
	}
	return best
}

// median returns the median over the rounds; 0 if none has a time.
func (row *Compared) median(what string) float64 {
	var all []float64
	for i := range row.Rounds {
		if d := row.Rounds[i].times(what); d.Steps > 0 {
			all = append(all, typical(d, what))
		}
	}
	if len(all) == 0 {
		return 0
	}
	return middle(all)
}

// middle returns the median; all is not empty.
func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// pairs returns our time divided by PyTorch's, round by round; nil if they have no round in common.
func pairs(ours, theirs *Compared, what string) *Spread {
	var all []float64
	var deviation float64
	for i := range ours.Rounds {
		for k := range theirs.Rounds {
			a, b := ours.Rounds[i].times(what), theirs.Rounds[k].times(what)
			if ours.Rounds[i].Round == theirs.Rounds[k].Round && min(a.Steps, b.Steps) > 0 {
				all = append(all, typical(a, what)/typical(b, what))
				deviation = math.Hypot(relativeError(a), relativeError(b))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	s := &Spread{Median: middle(all), Min: slices.Min(all), Max: slices.Max(all)}
	if len(all) == 1 {
		s.Error = s.Median * deviation
	}
	return s
}

// judge compares the losses of a batch size with PyTorch's in f32. A form of PyTorch that computes another loss gets no
// place in the ratios.
func (c *Comparison) judge(batch int, reference float64) {
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.BatchSize != batch || row.Loss == nil || math.IsNaN(reference) {
			continue
		}
		d := math.Abs(*row.Loss-reference) / math.Abs(reference)
		row.LossDifference = &d
		if limit := tolerances[row.Precision]; !(d <= limit) && row.Program == PyTorch {
			row.Failed = fmt.Sprintf("its loss differs by %.1g: up to %.0e is rounding", d, limit)
		}
	}
}
