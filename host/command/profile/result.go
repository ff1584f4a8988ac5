package profile

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Version is the format version of a Result.
const Version = 1

// Result is what profile found, and its JSON. docs/profile.md describes it.
type Result struct {
	Version   int    `json:"version"`
	Bundle    string `json:"bundle"`
	Device    string `json:"device"`
	Precision string `json:"precision"`
	BatchSize int    `json:"batch_size"`
	// MadeUp says that the clips were made, for want of a data set.
	MadeUp          bool                 `json:"made_up"`
	StepsPerSecond  float64              `json:"steps_per_second"`
	FramesPerSecond float64              `json:"frames_per_second"`
	StepMs          report.Distribution  `json:"step_ms"`
	Phases          []report.PhaseTime   `json:"phases"`
	Memory          []report.Memory      `json:"memory"`
	Utilization     []report.Utilization `json:"utilization"`
	Verdict         report.Verdict       `json:"verdict"`
	// Bottlenecks says that a finding is major.
	Bottlenecks bool       `json:"bottlenecks"`
	Headroom    []Headroom `json:"headroom"`
	// Applied is absent without --apply.
	Applied *Applied `json:"applied,omitempty"`

	report *report.Report
}

// ResultOf describes a measured run.
func ResultOf(r *report.Report, batch int, made bool) *Result {
	return &Result{
		Version: Version, Bundle: r.Bundle, Device: r.Device, Precision: r.Precision, BatchSize: batch, MadeUp: made,
		StepsPerSecond: r.StepsPerSecond, FramesPerSecond: r.FramesPerSecond, StepMs: r.StepMs.Distribution,
		Phases: r.PhaseTimes, Memory: r.Memory, Utilization: r.Utilization, Verdict: r.Verdict,
		Bottlenecks: bottleneck.Major(r.Verdict.Findings), report: r,
	}
}

// phaseText says what the phases are that have no stage's name.
var phaseText = map[string]string{
	"decode": "data load: decode", "wait": "wait for data", "other": "gaps between steps",
}

// Table returns the result as text of a width, without what was applied. Only the tables of times may be wider.
func (r *Result) Table(width int) string {
	w := &strings.Builder{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, h := range r.Headroom {
		fmt.Fprintf(t, "  %s\t%s\n", h.What, visible.Text(h.Text))
	}
	t.Flush()
	return fold.Prose(r.measured(), width) + "\nheadroom\n" + fold.Text(w.String(), width)
}

// measured returns what was measured of the run as text.
func (r *Result) measured() string {
	var b strings.Builder
	clips := ""
	if r.MadeUp {
		clips = ", made-up clips"
	}
	visible.Fprintf(&b, "%s on %s, %s, batch %d%s\n%s: %s steps/s, a step takes %s ± %s\n\n", r.Bundle, r.Device,
		r.Precision, r.BatchSize, clips, units.Count(r.StepMs.Steps, "step"), units.Rate(r.StepsPerSecond),
		units.Milliseconds(r.StepMs.Mean), units.Milliseconds(r.StepMs.Std))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tms: mean ± std\tp50\tp99\tof")
	of := "a batch"
	for _, p := range r.Phases {
		if p.Name == "wait" {
			of = "a step"
		}
		name := phaseText[p.Name]
		if name == "" {
			name = p.Name
		}
		fmt.Fprintf(w, "%s\t%.2f ± %.2f\t%.2f\t%.2f\t%s\n", visible.Text(name), p.Mean, p.Std, p.P50, p.P99, of)
	}
	w.Flush()
	fmt.Fprintln(&b)
	w = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tms of a step\tbusy")
	for _, p := range r.Verdict.Parts {
		fmt.Fprintf(w, "%s\t%.2f\t%.0f %%\n", visible.Text(p.Name), p.Ms, 100*p.Share)
	}
	w.Flush()
	fmt.Fprintln(&b)
	for _, c := range r.Verdict.Checks {
		fmt.Fprintln(&b, c)
	}
	fmt.Fprintf(&b, "- gaps between steps %.1f %%\n\n", 100*r.Verdict.Shares.Other)
	r.devices(&b)
	r.findings(&b)
	return b.String()
}

// leastSamples are those from which on the utilization of a GPU is shown. The driver's counter has one for each second,
// and the first is that of the time before training.
const leastSamples = 3

// devices lists how busy the devices were and how much memory they used.
func (r *Result) devices(b *strings.Builder) {
	gpus := 0
	for _, u := range r.Utilization {
		if u.Device == "cpu" {
			continue
		}
		gpus++
		busy := "utilization not reported by the driver"
		switch {
		case u.Samples >= leastSamples:
			busy = fmt.Sprintf("busy %s ± %s, %s", units.Percent(u.Mean), units.Percent(u.Std),
				units.Count(u.Samples, "sample"))
		case u.Samples > 0:
			busy = fmt.Sprintf("utilization not known after %s: more --num-steps measure it",
				units.Count(u.Samples, "sample"))
		}
		for _, m := range r.Memory {
			if m.Device == u.Device && m.Role == u.Role && m.ProcessPeakBytes > 0 {
				busy += fmt.Sprintf("; memory %s ± %d MiB, up to %s", units.Size(m.MeanBytes), m.StdBytes>>20,
					units.Size(m.ProcessPeakBytes))
			}
		}
		visible.Fprintf(b, "%s GPU: %s: %s\n", u.Role, u.Device, busy)
	}
	if gpus == 0 {
		b.WriteString("GPUs: none is used, so neither utilization nor memory of one is measured\n")
	}
	if r.Verdict.Cores > 0 {
		fmt.Fprintf(b, "cores: the run and its plugins take %s of their time%s\n", units.Percent(r.Verdict.Cores),
			others(r.Verdict.Others))
	}
}

// others says how busy other programs are.
func others(share float64) string {
	text := ", other programs " + units.Percent(share)
	switch {
	case share >= bottleneck.MostOthers:
		return text + ". This machine is too busy with them for a prediction: end them, and measure again"
	case share >= bottleneck.BusyLimit:
		return text + ". This machine is busy with them: times and gains depend on what they do"
	case share > 0:
		return text
	}
	return ""
}

// findings lists what costs speed.
func (r *Result) findings(b *strings.Builder) {
	b.WriteString("\nfindings\n")
	for i, f := range r.Verdict.Findings {
		mark := "-"
		if f.Major {
			mark = "✗"
		}
		text := f.Predicted()
		if text != "" {
			text = " " + text
		}
		visible.Fprintf(b, "  %s %d %s: %s%s\n", mark, i+1, f.Cause, f.Advice, text)
	}
	if !r.Bottlenecks {
		b.WriteString("  ✓ no major bottlenecks\n")
	}
}

// spread is the standard error of a run's speed, as a share of it.
func spread(d report.Distribution) float64 {
	if d.Mean <= 0 {
		return 0
	}
	return d.Error / d.Mean
}
