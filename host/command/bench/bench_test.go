package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/report"
)

// figures returns the figures of a run with that speed and that utilization of both GPUs.
func figures(speed, model, data float64) Figures {
	r := &report.Report{StepsPerSecond: speed, PhasesMs: report.Phases{
		{Name: "decode", Ms: 30}, {Name: "target", Ms: 4}, {Name: "transfer", Ms: 20}, {Name: "train", Ms: 15},
	}}
	r.StepMs.Mean, r.StepMs.Variation = 1000/speed, 0.25
	r.Utilization = []report.Utilization{
		{Device: "cpu", Role: "data", Mean: 1}, {Device: "GPU 1", Role: "model", Mean: model, Samples: 3},
		{Device: "GPU 0", Role: "data", Mean: data, Samples: 3},
	}
	r.Memory = []report.Memory{
		{Device: "GPU 1", Role: "model", ProcessPeakBytes: 7e9}, {Device: "GPU 0", Role: "data", ProcessPeakBytes: 1e9},
	}
	return Of(r)
}

// twoGPUs is a benchmark of two rounds with the batch sizes 8 and 16. Batch size 64 does not fit.
func twoGPUs() *Result {
	r := &Result{Version: Version, Bundle: "made-up", BatchSizes: []int{16, 8, 64}, Placement: TwoGPUs, Rounds: 2}
	for _, batch := range r.BatchSizes {
		for round := range 2 {
			for i, v := range InOrder(Variants(TwoGPUs, nil), round) {
				if batch == 64 {
					r.Fail(batch, v, "does not fit: cuMemAlloc\nand more")
					continue
				}
				if round == 1 {
					i = len(Variants(TwoGPUs, nil)) - 1 - i // the same speeds in both orders
				}
				speed := []float64{10, 5, 8, 9, 4, 6, 5, 10}[i] * 16 / float64(batch)
				r.Add(batch, v, round, figures(speed+float64(round), 0.85, 0.1))
			}
		}
	}
	r.Compare()
	return r
}

func TestCompare(t *testing.T) {
	r := twoGPUs()
	var order []string
	for _, row := range r.Rows {
		if row.BatchSize == 8 {
			order = append(order, row.InputMode+", "+row.Placement)
		}
	}
	want := []string{
		"compute only, two GPUs", "synchronous, two GPUs", "double buffered, two GPUs", "triple buffered, two GPUs",
		"synchronous, one GPU", "triple buffered, one GPU", "synchronous, plugins on the CPU",
		"triple buffered, plugins on the CPU",
	}
	if !slices.Equal(order, want) {
		t.Errorf("rows %q, want %q", order, want)
	}
	triple := r.find(16, Variant{TwoGPUs, TripleBuffered})
	// 9/10 in the first round, 10/11 in the second. Of two rounds the slower one is the median.
	if s := triple.OfComputeOnly; s == nil || s.Min != 0.9 || s.Max != 10.0/11 || s.Median != (0.9+10.0/11)/2 ||
		triple.StepsPerSecond != 9 {
		t.Errorf("%+v at %g steps/s", s, triple.StepsPerSecond)
	}
	if s := r.find(64, Variant{TwoGPUs, TripleBuffered}).OfComputeOnly; s != nil {
		t.Errorf("a variant without figures is %v of compute only", s)
	}
}

// TestOneRound: the ratio of one round has the standard error of its steps, and the table says what that is.
func TestOneRound(t *testing.T) {
	r := Result{Placement: OnCPU, BatchSizes: []int{8}, Rounds: 1}
	for mode, speed := range map[string]float64{ComputeOnly: 10, TripleBuffered: 5} {
		r.Add(8, Variant{OnCPU, mode}, 0, figures(speed, 0, 0.1))
	}
	for i := range r.Rows {
		r.Rows[i].Rounds[0].StepMs.Steps, r.Rows[i].Rounds[0].StepMs.Variation = 25, 0.3
	}
	r.Compare()
	s := r.find(8, Variant{OnCPU, TripleBuffered}).OfComputeOnly
	if want := 0.5 * 0.06 * math.Sqrt2; math.Abs(s.Error-want) > 1e-12 { // 0.06 is 0.3 / sqrt(25)
		t.Errorf("error %g, want %g", s.Error, want)
	}
	table := r.Table(8)
	if !strings.Contains(table, "0.5000 ± 0.0424") || !strings.Contains(table, "--bench-rounds 3") {
		t.Error(table)
	}
}

func TestGoals(t *testing.T) {
	one, cpu, none := twoGPUs(), twoGPUs(), twoGPUs()
	one.Placement, cpu.Placement = PluginsOnCPU, OnCPU
	none.Rows = nil
	for _, r := range []*Result{one, cpu, none} {
		r.Compare()
	}
	low := twoGPUs()
	for i := range low.Rows {
		for k := range low.Rows[i].Rounds {
			low.Rows[i].Rounds[k].GPUs = nil // the driver gives no samples
			low.Rows[i].Rounds[k].StepMs.Variation = 0.4
		}
	}
	low.Compare()
	for _, c := range []struct {
		name     string
		result   *Result
		what     string
		measured float64
		reached  string
		note     string
	}{
		{"two GPUs", twoGPUs(), "model GPU busy", 85, Target, "batch 16, triple buffered"},
		// Busy for a tenth of the time, it could feed 10 model GPUs. By the time of its stage alone it could feed 27.
		{"two GPUs", twoGPUs(), "data GPU busy", 10, Missed, "not a fault: its longest stage takes 4.0 ms of a step " +
			"of 111.1, so this data GPU could serve 10 model GPUs"},
		{"two GPUs", twoGPUs(), "step-time variation", 25, Target, ""},
		{"two GPUs", twoGPUs(), "two GPUs pipelined, of one GPU synchronous", (9.0/4 + 10.0/5) / 2, Stretch,
			"2.00 to 2.25 by round; "},
		{"two GPUs", twoGPUs(), "two GPUs pipelined, of one GPU pipelined", (9.0/6 + 10.0/7) / 2, Missed, ""},
		{"two GPUs", twoGPUs(), "two GPUs pipelined, of two GPUs synchronous", (9.0/5 + 10.0/6) / 2, Target, ""},
		{"two GPUs", twoGPUs(), "one GPU pipelined, of one GPU synchronous", (6.0/4 + 7.0/5) / 2, Minimum, "one GPU"},
		{"two GPUs", twoGPUs(), "largest batch", 16, Missed, "64 does not"},
		{"two GPUs", twoGPUs(), "speed at batch 8", 18, Target, "made-up"},
		{"two GPUs", twoGPUs(), "model GPU's memory at batch 8", 7, Missed, ""},
		{"two GPUs", twoGPUs(), "model GPU's memory at batch 16", 7, Target, ""},
		{"one GPU", one, "two GPUs pipelined, of one GPU pipelined", 0, NotMeasured, "no separate data GPU"},
		{"one GPU", one, "data GPU busy", 0, NotMeasured, "no separate data GPU"},
		{"one GPU", one, "one GPU pipelined, of one GPU synchronous", (10.0/5 + 11.0/6) / 2, Minimum,
			"plugins on the CPU"},
		{"the CPU", cpu, "model GPU busy", 0, NotMeasured, "no GPU"},
		{"the CPU", cpu, "speed at batch 8", 0, NotMeasured, "no GPU"},
		{"the CPU", cpu, "largest batch", 0, NotMeasured, "no GPU"},
		{"a silent driver", low, "model GPU busy", 0, NotMeasured, "the driver gave no sample"},
		{"a silent driver", low, "data GPU busy", 0, NotMeasured, "the driver gave no sample"},
		{"a silent driver", low, "model GPU's memory at batch 8", 0, NotMeasured, "the driver does not say"},
		{"a silent driver", low, "step-time variation", 40, Minimum, ""},
		{"nothing", none, "model GPU busy", 0, NotMeasured, ""},
		{"nothing", none, "largest batch", 0, NotMeasured, "no batch ran"},
	} {
		at := slices.IndexFunc(c.result.Goals, func(h Goal) bool { return h.What == c.what })
		if at < 0 {
			t.Errorf("%s: nothing on %s", c.name, c.what)
			continue
		}
		h := c.result.Goals[at]
		measured := 0.0
		if h.Measured != nil {
			measured = *h.Measured
		}
		d := measured - c.measured
		if d*d > 1e-18 || h.Reached != c.reached || !strings.Contains(h.Note, c.note) ||
			(h.Measured == nil) != (c.reached == NotMeasured) {
			t.Errorf("%s, %s: %g, %s, %q, want %g, %s, %q", c.name, c.what, measured, h.Reached, h.Note, c.measured,
				c.reached, c.note)
		}
	}
}

// TestReference: the reference batch is the largest batch up to 32 that ran, else the smallest.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		ran  []int
		want int
	}{{nil, 0}, {[]int{64, 8, 32, 16}, 32}, {[]int{128, 64}, 64}} {
		r := &Result{BatchSizes: []int{64, 8, 128, 32, 16}, Placement: OneGPU}
		for _, n := range c.ran {
			r.Add(n, Variant{OneGPU, TripleBuffered}, 0, figures(1, 1, 1))
		}
		if got := r.reference(); got != c.want {
			t.Errorf("batch sizes %v: reference %d, want %d", c.ran, got, c.want)
		}
	}
}

func TestTables(t *testing.T) {
	r := twoGPUs()
	for _, want := range []string{
		"batch 16  ", "compute only  ", "synchronous, one GPU  ", "triple buffered  ",
		"0.9045 (0.9000 to 0.9091)  85 %, 6675 MB  10 %, 953 MB\n",
	} {
		if text := r.Table(16); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	const disturbed = "a ratio above 1 is no gain"
	if strings.Contains(r.Table(16), disturbed) {
		t.Error("a ratio below 1 is called disturbed")
	}
	r.find(16, Variant{TwoGPUs, TripleBuffered}).OfComputeOnly.Median = 1.96
	if !strings.Contains(r.Table(16), disturbed) {
		t.Error("a ratio of 1.96 is called a gain")
	}
	cpu := twoGPUs()
	cpu.Placement = OnCPU
	if cpu.Compare(); !strings.Contains(cpu.GoalTable(), "not measured (no GPU): model GPU busy; data GPU busy; ") {
		t.Error(cpu.GoalTable())
	}
	if text := r.Table(64); !strings.Contains(text, "does not fit: cuMemAlloc\n") || strings.Contains(text, "more") {
		t.Error(text)
	}
	for _, want := range []string{
		"✓: batch 16, triple buffered\n", "✓ stretch: ", "✗ missed: ", "✓: 1.40 to 1.50 by round",
	} {
		if text := r.GoalTable(); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// Other programs read this.
	data, err := json.Marshal(r)
	var back Result
	if err != nil || json.Unmarshal(data, &back) != nil || back.GoalTable() != r.GoalTable() ||
		back.Table(16) != r.Table(16) {
		t.Errorf("%v: the file read differs from the one written", err)
	}
}
