package host

import (
	"fmt"
	"io"
	"strings"
)

// banner says what is about to run, before it does.
func banner(out io.Writer, j *job, dir string) {
	b, c := j.bundle.Manifest, j.cfg
	line := func(label, format string, args ...any) {
		fmt.Fprintf(out, "%-12s %s\n", label, fmt.Sprintf(format, args...))
	}
	n := 0
	for _, p := range b.Parameters {
		n += p.Elements()
	}
	line("bundle", "%s, %s parameters, %s, learning rate %g (%s)", b.Name, thousands(n), b.Optimizer.Name, c.LR, c.Schedule)
	line("data", "%s: %d clips, %d speakers, %.1f min", j.train.index.Dir, len(j.train.index.Rows), len(j.train.index.Speakers), j.train.minutes())
	if j.val != nil {
		line("validation", "%d clips, %.1f min", len(j.val.index.Rows), j.val.minutes())
	}
	if n := len(j.train.plan.Excluded()); n > 0 {
		line("", "%d clips fit no bucket and are left out (log.jsonl names them)", n)
	}
	line("device", "cpu, %d threads: the model is created on the CPU, plugins run on the CPU", j.threads())
	var stages []string
	for _, in := range j.pipeline.Instances {
		stages = append(stages, fmt.Sprintf("%s (%s/%s)", in.Name, j.pipeline.Plugins[in.Plugin].Name(), in.Stage.Name))
	}
	line("pipeline", "decode -> %s -> transfer -> train", strings.Join(stages, " -> "))
	line("batches", "%d rows x %d, %d buckets, %d batches an epoch", c.BatchSize, c.Accumulate, len(j.buckets), j.train.plan.Batches())
	line("depths", "%d ring slots of %.1f MiB, %d device slots, training starts at %d ready batches or after %g s",
		c.BufferSize, float64(j.slotSize())/(1<<20), j.slots, min(j.prefetch, c.BufferSize), c.ModelStartDelay)
	line("run", "%s", dir)
	fmt.Fprintln(out)
}

func (s *split) minutes() float64 {
	samples := 0
	for _, r := range s.index.Rows {
		samples += r.Samples
	}
	return float64(samples) / float64(s.index.SampleRate) / 60
}

// thousands writes 371793 as 371,793.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
