package bench

import (
	"cmp"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Version is the format version of the file.
const Version = 3

// Result is the whole benchmark, and the content of its file. docs/benchmarks.md describes it.
type Result struct {
	Version int    `json:"version"`
	Bundle  string `json:"bundle"`
	// Bucket is the largest one. All measurements use it, so that steps can be compared.
	Bucket map[string]int `json:"bucket"`
	Steps  int            `json:"steps"` // of each measurement
	// BatchSizes are the requested ones, measured or not.
	BatchSizes []int `json:"batch_sizes"`
	// Placement is the requested one, or the default on this machine.
	Placement string `json:"placement"`
	// Devices has the GPU of each role, "model" and "data". Empty on the CPU.
	Devices map[string]string `json:"devices,omitempty"`
	Rounds  int               `json:"rounds"`
	With    map[string]string `json:"with"` // versions
	Rows    []Row             `json:"rows"`
	Goals   []Goal            `json:"goals"`
	// Interrupted reports that measurements are missing.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Row is the result of a variant with one batch size.
type Row struct {
	BatchSize int    `json:"batch_size"`
	Placement string `json:"placement"`
	InputMode string `json:"input_mode"`
	// Figures is the round with the median speed.
	Figures
	// OfComputeOnly is the speed divided by that of "compute only" in the same round; null if that was not measured.
	OfComputeOnly *Spread `json:"of_compute_only"`
	// Rounds has the figures of every round.
	Rounds []Round `json:"rounds"`
	// Failed is the reason why there are no figures, such as a batch that does not fit into memory.
	Failed string `json:"failed,omitempty"`
}

// Round is one measurement.
type Round struct {
	Round int `json:"round"` // counts from 0
	Figures
}

// Figures are the figures of one run.
type Figures struct {
	StepsPerSecond      float64             `json:"steps_per_second"`
	FramesPerSecond     float64             `json:"frames_per_second"`
	StepMs              report.Distribution `json:"step_ms"`
	InputStallRatio     float64             `json:"input_stall_ratio"`
	TransferHiddenRatio float64             `json:"transfer_hidden_ratio"`
	PhasesMs            report.Phases       `json:"phases_ms"`
	GPUs                []GPU               `json:"gpus,omitempty"`
	// Graphs are the training graphs: how they are fused, and what of them is not.
	Graphs []report.Graph `json:"graphs,omitempty"`
}

// GPU is the use of a GPU in one role. Two roles may share a GPU.
type GPU struct {
	Role   string `json:"role"` // "model", "data"
	Device string `json:"device"`
	// Busy is the mean utilization by all processes, Std the standard deviation of the Samples, one per second. Without
	// samples it is unknown.
	Busy    float64 `json:"busy"`
	Std     float64 `json:"std"`
	Samples int     `json:"samples"`
	// PeakBytes is the peak memory of the role's processes together; 0 if unknown.
	PeakBytes int64 `json:"peak_bytes"`
}

// Spread is the spread of a figure over several rounds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Error is the standard error of a single round, from the times of its steps; 0 with several rounds.
	Error float64 `json:"error,omitempty"`
}

// Of returns the figures of a run's report.
func Of(r *report.Report) Figures {
	f := Figures{
		StepsPerSecond: r.StepsPerSecond, FramesPerSecond: r.FramesPerSecond, StepMs: r.StepMs.Distribution,
		InputStallRatio: r.InputStallRatio, TransferHiddenRatio: r.TransferHiddenRatio, PhasesMs: r.PhasesMs,
		Graphs: trained(r),
	}
	for _, u := range r.Utilization {
		if u.Device == "cpu" {
			continue
		}
		g := GPU{Role: u.Role, Device: u.Device, Busy: u.Mean, Std: u.Std, Samples: u.Samples}
		for _, m := range r.Memory {
			if m.Device == u.Device && m.Role == u.Role {
				g.PeakBytes = m.ProcessPeakBytes
			}
		}
		f.GPUs = append(f.GPUs, g)
	}
	return f
}

// trained returns the training graphs of a run.
func trained(r *report.Report) []report.Graph {
	return slices.DeleteFunc(slices.Clone(r.Graphs), func(g report.Graph) bool { return g.Use != report.Training })
}

// gpu returns the GPU of a role; nil if there is none, or no row.
func (row *Row) gpu(role string) *GPU {
	if row == nil {
		return nil
	}
	for i := range row.GPUs {
		if row.GPUs[i].Role == role {
			return &row.GPUs[i]
		}
	}
	return nil
}

// find returns the row of a variant, or nil.
func (r *Result) find(batch int, v Variant) *Row {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.BatchSize == batch && row.Placement == v.Placement && row.InputMode == v.InputMode {
			return row
		}
	}
	return nil
}

// row returns the row of a variant, and adds it if it is missing.
func (r *Result) row(batch int, v Variant) *Row {
	if r.find(batch, v) == nil {
		r.Rows = append(r.Rows,
			Row{BatchSize: batch, Placement: v.Placement, InputMode: v.InputMode, Rounds: []Round{}})
	}
	return r.find(batch, v)
}

// Add adds the figures of a variant in a round.
func (r *Result) Add(batch int, v Variant, round int, f Figures) {
	row := r.row(batch, v)
	row.Rounds = append(row.Rounds, Round{round, f})
}

// Fail records why a variant has no figures.
func (r *Result) Fail(batch int, v Variant, why string) { r.row(batch, v).Failed = why }

// Failed reports whether a variant failed.
func (r *Result) Failed(batch int, v Variant) bool {
	row := r.find(batch, v)
	return row != nil && row.Failed != ""
}

// Compare computes each row's figures from its rounds, its ratio to "compute only", and the goals.
func (r *Result) Compare() {
	order := Variants(r.Placement, nil)
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		place := func(w Row) int { return slices.Index(order, Variant{w.Placement, w.InputMode}) }
		return cmp.Or(slices.Index(r.BatchSizes, a.BatchSize)-slices.Index(r.BatchSizes, b.BatchSize),
			place(a)-place(b))
	})
	for i := range r.Rows {
		row := &r.Rows[i]
		if len(row.Rounds) == 0 {
			continue
		}
		bySpeed := slices.SortedStableFunc(slices.Values(row.Rounds),
			func(a, b Round) int { return cmp.Compare(a.StepsPerSecond, b.StepsPerSecond) })
		row.Figures = bySpeed[(len(bySpeed)-1)/2].Figures
		row.OfComputeOnly = r.ratio(row.BatchSize, order[0], row)
	}
	r.Goals = goals(r)
}

// ratio returns a row's speed divided by that of a variant, by rounds; nil if they have no round in common.
func (r *Result) ratio(batch int, base Variant, row *Row) *Spread {
	b := r.find(batch, base)
	if b == nil || row == nil {
		return nil
	}
	var all []float64
	var deviation float64 // of the ratio of the last round
	for _, x := range row.Rounds {
		for _, y := range b.Rounds {
			if x.Round == y.Round && y.StepsPerSecond > 0 {
				all = append(all, x.StepsPerSecond/y.StepsPerSecond)
				deviation = math.Hypot(relativeError(x.StepMs), relativeError(y.StepMs))
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	n := len(all)
	s := &Spread{Median: (all[(n-1)/2] + all[n/2]) / 2, Min: all[0], Max: all[n-1]}
	if n == 1 && row != b {
		s.Error = s.Median * deviation
	}
	return s
}

// relativeError is the standard error of the mean time of a step, divided by it.
func relativeError(d report.Distribution) float64 {
	if d.Steps == 0 {
		return 0
	}
	return d.Variation / math.Sqrt(float64(d.Steps))
}

// measured returns the row of a variant, or nil if it has no figures.
func (r *Result) measured(batch int, v Variant) *Row {
	if row := r.find(batch, v); row != nil && len(row.Rounds) > 0 && row.Failed == "" {
		return row
	}
	return nil
}
