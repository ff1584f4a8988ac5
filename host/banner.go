package host

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/report"
)

// banner says what is about to run, before it does.
func banner(out io.Writer, j *job, dir string) {
	b, c := j.bundle.Manifest, j.cfg
	var text strings.Builder
	row := func(label, format string, args ...any) {
		fmt.Fprintf(&text, "  %-12s %s\n", label, fmt.Sprintf(format, args...))
	}
	n := 0
	for _, p := range b.Parameters {
		n += p.Elements()
	}
	schedule := c.Schedule
	if c.WarmupSteps > 0 {
		schedule += " after " + report.Count(int(c.WarmupSteps), "step") + " of warm-up"
	}
	fmt.Fprintf(&text, "xtts-host trains %s\n\n", b.Name)
	row("model", "%s parameters in f32", report.Thousands(n))
	counts, memory := j.trainedText()
	row("trained", "%s", counts)
	row("", "%s", memory)
	row("optimizer", "%s, learning rate %g, %s", b.Optimizer.Name, c.LR, schedule)
	row("data", "%s", filepath.Join(j.data.Train.Index.Dir, j.data.Train.Index.List))
	row("", "%s, %s, %.1f min", report.Count(len(j.data.Train.Index.Rows), "clip"), report.Count(len(j.data.Train.Index.Speakers), "speaker"), j.data.Train.Minutes())
	row("validation", "%s", j.validation())
	row("batches", "%s", j.batches())
	text.WriteByte('\n')

	var stages []string
	for _, in := range j.pipeline.Instances {
		stages = append(stages, in.Name)
	}
	row("pipeline", "decode -> %s -> transfer -> train", strings.Join(stages, " -> "))
	row("plugins", "%s", strings.Join(j.plugins(), ", "))
	for i, line := range j.placement.Lines(c.NumWorkers, j.threads()) {
		row(first(i, "devices"), "%s", line)
	}
	row("depths", "ring of %s of %.1f MiB (--buffer-size), %s (--slots)", report.Count(c.BufferSize, "slot"), float64(j.slotSize())/(1<<20), report.Count(j.slots, "device slot"))
	row("prefetch", "training starts when %s are ready, or after %g s", report.Count(min(j.prefetch, c.BufferSize), "batch"), c.ModelStartDelay)
	row("run folder", "%s", dir)
	if c.Trace != "" {
		row("timeline", "%s: up to %s, for https://ui.perfetto.dev", c.Trace, report.Count(c.TraceSteps, "step"))
	}
	text.WriteByte('\n')
	io.WriteString(out, text.String())
}

// validation says on what the model is evaluated, and when.
func (j *job) validation() string {
	if j.data.Val == nil {
		return "none (--val-data, or metadata_eval.csv or eval.jsonl in the folder of the training data)"
	}
	when := "every epoch"
	if n := j.cfg.EvalEvery; n > 0 {
		when = "every " + report.Count(int(n), "step")
	}
	return fmt.Sprintf("%s, %.1f min, after %s", report.Count(len(j.data.Val.Index.Rows), "clip"), j.data.Val.Minutes(), when)
}

// batches says how long the run is.
func (j *job) batches() string {
	c := j.cfg
	s := batch.Source{Train: j.data.Train.Plan, Accumulate: c.Accumulate, Epochs: c.Epochs, MaxSteps: c.MaxSteps}
	size := report.Count(c.BatchSize, "row")
	if c.Accumulate > 1 {
		size += fmt.Sprintf(" x %d accumulated", c.Accumulate)
	}
	return fmt.Sprintf("%s, by length in %s; %s an epoch, %s in all",
		size, report.Count(len(j.buckets), "bucket"), report.Count(int(s.StepsPerEpoch()), "step"), report.Count(int(s.Total()), "step"))
}

// plugins names the plugins, the stages that they serve, and their processes.
func (j *job) plugins() []string {
	s := j.setup()
	var out []string
	for i, e := range j.pipeline.Plugins {
		var stages []string
		for _, in := range j.pipeline.Instances {
			if in.Plugin == i {
				stages = append(stages, in.Name)
			}
		}
		out = append(out, fmt.Sprintf("%s %s (%s; %s)", e.Name(), e.Manifest.Version, strings.Join(stages, ", "), report.Count(s.WorkersOf[e.Name()], "process")))
	}
	return out
}
