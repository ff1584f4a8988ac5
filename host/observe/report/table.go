package report

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// columns is the largest width of the table, label the width of its first column.
const (
	columns = 100
	label   = 14
)

// Table returns the report as text: the important figures and advice. folder is the run folder.
func (r *Report) Table(folder string) string { return r.TableOf(folder, columns) }

// TableOf is Table for a terminal of a width, which may be narrower.
func (r *Report) TableOf(folder string, width int) string {
	t := &table{room: max(label, min(width, columns)-label-4)}
	t.head(r)
	r.Data.table(t)
	t.results(r)
	for _, b := range r.Baselines {
		t.baseline(r, b)
	}
	t.spoken(r.Spoken)
	t.probed(r.Probed)
	t.speed(r)
	t.adaptive(r.Adaptive)
	t.augmentations(r.Augmentations)
	t.features(r.FeatureCache)
	t.ranks(r.Ranks)
	t.memory(r)
	t.troubles(r)
	if r.Verdict.Diverged {
		t.row("verdict", "diverged")
	} else {
		t.row("limited by", r.Verdict.Bottleneck)
	}
	for _, advice := range r.Verdict.Advice {
		t.row("", advice+r.Verdict.predicted(advice))
	}
	if s := r.Verdict.SecondGPU; s != nil {
		t.row("a second GPU", fmt.Sprintf("speed-up at most %.2f: %s", s.Times, s.Reason))
	}
	t.row("run folder", filepath.Clean(folder))
	return t.b.String()
}

type table struct {
	b    strings.Builder
	room int // for the text of a row
}

// row writes a labelled text, broken at the table's width.
func (t *table) row(name, text string) {
	text = fold.Join(visible.Text(text)) // a path is not broken
	for {
		line := text
		if len([]rune(line)) > t.room && !strings.Contains(line, " && ") { // a command is copied
			if at := strings.LastIndexByte(string([]rune(line)[:t.room+1]), ' '); at > 0 {
				line = line[:at]
			}
		}
		fmt.Fprintf(&t.b, "  %-*s  %s\n", label, name, fold.Split(line))
		text = strings.TrimSpace(text[len(line):])
		if text == "" {
			return
		}
		name = ""
	}
}

func (t *table) gap() { t.b.WriteByte('\n') }

func (t *table) head(r *Report) {
	outcome := r.Outcome
	if outcome != Done && outcome != Interrupted {
		outcome = "failed" // the command's error follows
	}
	device := r.Device
	if p := r.Process; p != nil {
		device += fmt.Sprintf(", rank %d of %d", p.Rank, p.Of)
	}
	visible.Fprintf(&t.b, "%s on %s: %s after %s and %s in %s\n", r.Bundle, device, outcome,
		units.Count(r.Steps, "step"), units.Count(r.Samples, "sample"),
		units.Duration(time.Duration(r.WallS*float64(time.Second))))
	if r.ResumedAt > 0 {
		fmt.Fprintf(&t.b, "resumed at step %d: times and speeds are of the steps since\n", r.ResumedAt)
	}
	t.gap()
}

func (t *table) results(r *Report) {
	if math.IsNaN(float64(r.Loss.First)) {
		t.row("loss", "none")
	} else {
		t.row("loss", fmt.Sprintf("%s -> %s  (best %s)", units.Number(float64(r.Loss.First)),
			units.Number(float64(r.Loss.Last)), units.Number(float64(r.Loss.Best))))
	}
	if e := r.Evaluation; e == nil {
		t.row("evaluation", "none")
	} else {
		loss := units.Number(float64(e.Loss))
		if loss == "-" {
			loss = "not finite"
		}
		text := fmt.Sprintf("%s at step %d, %s", loss, e.Step, units.Count(int64(e.Samples), "row"))
		if e.Best.By != "" && e.Best.Step == 0 {
			text += fmt.Sprintf("  (none is the best by %s)", e.Best.By)
		} else if e.Best.Value != nil {
			text += fmt.Sprintf("  (best %s %s at step %d)", e.Best.By, units.Number(float64(*e.Best.Value)),
				e.Best.Step)
		} else if best := units.Number(float64(e.Best.Loss)); best != "-" {
			text += fmt.Sprintf("  (best %s at step %d)", best, e.Best.Step)
		}
		t.row("evaluation", text)
	}
	if r.EarlyStop != nil {
		t.row("stopped early", r.EarlyStop.String())
	}
}

// baseline formats a small table: the metric of the model compared with two predictors without a model.
func (t *table) baseline(r *Report, b Baseline) {
	cells := func(name, constant, previous, model, share string) {
		t.row(name, fmt.Sprintf("%8s  %14s  %8s  %16s", constant, previous, model, share))
	}
	line := func(name string, constant, previous, model, share Float) {
		if math.IsNaN(float64(model)) {
			return
		}
		text := "-"
		if !math.IsNaN(float64(share)) {
			if text = fmt.Sprintf("%.0f %%", 100*share); share > 10 {
				text = "> 1000 %"
			}
		}
		cells(name, units.Number(float64(constant)), units.Number(float64(previous)), units.Number(float64(model)),
			text)
	}
	if r.Steps == 0 {
		return
	}
	t.gap()
	cells(b.Metric, "constant", "previous frame", "model", "model / constant")
	line("  training", b.Constant, b.PreviousFrame, b.TrainMeanLast20, b.RatioTrain)
	held := "  held out"
	if r.Data.Shared > 0 {
		held = "  validation" // some of its clips are training clips
	}
	line(held, b.EvalConstant, b.EvalPreviousFrame, b.Eval, b.RatioEval)
}

func (t *table) speed(r *Report) {
	t.gap()
	if text := r.TimeS.String(); text != "" && r.Steps > 0 {
		t.row("time", text)
	}
	if r.StepMs.Steps == 0 {
		t.row("speed", "no step was trained")
		return
	}
	t.row("speed", fmt.Sprintf("%s steps/s, %s frames/s", units.Rate(r.StepsPerSecond),
		units.Thousands(int64(math.Round(r.FramesPerSecond)))))
	t.row("input stall", fmt.Sprintf("%s of the time; %s of the transfer time overlapped with training",
		units.Percent(r.InputStallRatio), units.Percent(r.TransferHiddenRatio)))
	s := r.StepMs
	text := fmt.Sprintf("mean %s, std %s, variation %s", units.Milliseconds(s.Mean), units.Milliseconds(s.Std),
		units.Percent(s.Variation))
	if s.FirstStepExcluded {
		text += "  (without the first step)"
	}
	t.row("step time", text)
	t.row("", fmt.Sprintf("min %s, p50 %s, p99 %s, max %s", units.Milliseconds(s.Min), units.Milliseconds(s.P50),
		units.Milliseconds(s.P99), units.Milliseconds(s.Max)))
	var batch, step, gpu []string
	list := &batch
	for _, p := range r.PhasesMs {
		switch p.Name { // these names are reserved: no stage may have them
		case "wait":
			list = &step
		case "gpu_train", "gpu_optimizer", "gpu_transfer":
			list, p.Name = &gpu, strings.TrimPrefix(p.Name, "gpu_")
		}
		*list = append(*list, p.Name+" "+units.Milliseconds(p.Ms))
	}
	t.row("per step", strings.Join(step, ", "))
	if len(gpu) > 0 {
		t.row("on the GPU", strings.Join(gpu, ", "))
	}
	if len(batch) > 0 {
		t.row("in parallel", strings.Join(batch, ", ")+" per batch")
	}
	var checks []string
	for _, c := range r.Verdict.Checks {
		checks = append(checks, c.String())
	}
	if len(checks) > 0 {
		t.row("of a step", strings.Join(checks, ", "))
	}
	t.fused(r.Graphs)
}

// memory formats the memory use and the utilization of every device.
func (t *table) memory(r *Report) {
	for _, m := range r.Memory {
		var parts []string
		if m.ArenaPeakBytes > 0 {
			parts = append(parts, "arenas "+units.Size(m.ArenaPeakBytes))
		}
		if m.ProcessPeakBytes > 0 {
			parts = append(parts, "process "+units.Size(m.ProcessPeakBytes)+" at the peak")
		}
		if m.LimitBytes > 0 {
			parts = append(parts, "limit "+units.Size(m.LimitBytes))
		}
		if len(parts) > 0 {
			t.row("memory", fmt.Sprintf("%s (%s): %s", m.Device, m.Role, strings.Join(parts, ", ")))
		}
	}
	for _, u := range r.Utilization {
		if !u.Measured() {
			continue
		}
		text := fmt.Sprintf("%s (%s): busy %s", u.Device, u.Role, units.Percent(u.Mean))
		if u.Samples > 1 {
			text += " ± " + units.Percent(u.Std)
		}
		text += " of the time"
		if u.Samples > 0 {
			text += ", " + units.Count(int64(u.Samples), "sample")
		}
		t.row("utilization", text)
	}
}

// troubles lists the faults of the run.
func (t *table) troubles(r *Report) {
	for _, p := range r.Plugins {
		calls := units.Count(p.Calls, "call")
		if p.Ranks > 1 {
			calls += fmt.Sprintf(" of %d ranks", p.Ranks)
		}
		text := fmt.Sprintf("%s: %s, %s, p50 %s, p99 %s, %s", p.ID, units.Count(int64(p.Workers), "worker"), calls,
			units.Milliseconds(p.P50Ms), units.Milliseconds(p.P99Ms),
			units.Count(int64(p.Restarts), "restart"))
		if p.Failed+p.Lost > 0 {
			text += fmt.Sprintf(", %d calls failed, %d lost", p.Failed, p.Lost)
		}
		if p.PeakMemoryBytes > 0 {
			text += fmt.Sprintf(", up to %s MiB", units.Mebibytes(float64(p.PeakMemoryBytes)))
		}
		t.row("plugin", text)
	}
	if r.NoDeadlines {
		t.row("deadlines", "none for the plugins (--debug)")
	}
	if r.SkippedSteps > 0 {
		t.row("skipped", units.Count(r.SkippedSteps, "step")+": not finite, or no rows")
	}
	if good := r.GoodCheckpoint; good != nil && (r.SkippedSteps > 0 || r.Outcome != Done && r.Outcome != Interrupted) {
		t.row("last good", good.Folder)
	}
	if r.UnsavedCheckpoints > 0 {
		t.row("not saved", units.Count(int64(r.UnsavedCheckpoints), "checkpoint")+", the disk was full")
	}
	if n := len(r.Warnings); n > 0 {
		t.row("warnings", fmt.Sprintf("%d, listed in report.json; the last one: %s", n, r.Warnings[n-1]))
	}
	if r.Quarantined > 0 {
		t.row("quarantined", units.Count(int64(r.Quarantined), "row")+", listed in quarantine.jsonl")
	}
	t.gap()
}
