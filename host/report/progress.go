package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/train"
)

// Progress writes the lines that a person, or a file behind a pipe, sees of a running training. Its clock is the
// durations in the windows.
type Progress struct {
	// Metrics names the metrics of a window.
	Metrics []string
	// Total is the run's last step, 0 when it is not known: then there is no estimate of the time left.
	Total int64
	// Every says how many steps pass from line to line. 0 switches the lines off.
	Every int64
	// Bottleneck names what limits the pipeline. It is asked for a line whose input stall is high. Nil leaves the name out.
	Bottleneck func() string

	started bool
	all     span // behind the first window of this process
	since   span // behind the last line
}

// span is a number of windows in a row.
type span struct {
	steps                int64
	time, wait, evaluate time.Duration
}

// Window returns the line of a window, without a line end, or "" when none is due. Lines are due at the first window,
// at multiples of Every, and at the last. Speed and input stall are means since the line before.
func (p *Progress) Window(w *train.Window) string {
	if p.Every <= 0 {
		return ""
	}
	first := !p.started
	p.started = true
	if !first { // the first waits for the pipeline to fill: it says nothing about the others
		for _, s := range []*span{&p.all, &p.since} {
			s.steps++
			s.time += w.Time
			s.wait += w.InputWait
		}
	}
	if !first && w.Step%p.Every != 0 && w.Step != p.Total {
		return ""
	}
	line := p.line(w)
	p.since = span{}
	return line
}

func (p *Progress) line(w *train.Window) string {
	var b strings.Builder
	b.WriteString(p.head(w.Step))
	p.losses(&b, w.Loss, w.Metrics, w.Skipped)
	fmt.Fprintf(&b, "  lr %.1e  grad_norm %5s", w.LR, number(w.GradNorm))
	if p.since.time > 0 {
		stall := ratio(p.since.wait, p.since.time)
		fmt.Fprintf(&b, "  %5s steps/s  input stall %5s", rate(float64(p.since.steps)/p.since.time.Seconds()), percent(stall))
		if stall >= stallLimit && p.Bottleneck != nil {
			fmt.Fprintf(&b, " (%s)", p.Bottleneck())
		}
	}
	if left := p.Total - w.Step; left > 0 && p.all.steps > 0 {
		perStep := float64(p.all.time+p.all.evaluate) / float64(p.all.steps)
		b.WriteString("  eta " + duration(time.Duration(perStep*float64(left))))
	}
	return b.String()
}

// Evaluated returns the line of an evaluation. best says that it is the best so far.
func (p *Progress) Evaluated(e *train.Evaluation, best bool) string {
	p.all.evaluate += e.Time
	var b strings.Builder
	b.WriteString(p.head(e.Step))
	p.losses(&b, e.Loss, e.Metrics, false)
	fmt.Fprintf(&b, "  evaluation of %s in %s", plural(int64(e.Samples), "row"), duration(e.Time))
	if best {
		b.WriteString(", the best so far")
	}
	return b.String()
}

// maxNames is how many rows a line names.
const maxNames = 5

// Skipped returns the line of a skipped window, which says why and which rows were in it. name gives a row's id in the
// data set. Such a line is due at once, and whatever Every is.
func (p *Progress) Skipped(w *train.Window, name func(row int32) string) string {
	line := p.head(w.Step) + "  skipped: "
	switch {
	case len(w.Rows) == 0:
		return line + "every row is empty"
	case math.IsNaN(w.Loss), math.IsInf(w.Loss, 0):
		line += fmt.Sprintf("the loss is not finite (%v); rows ", w.Loss)
	default:
		line += fmt.Sprintf("the gradients are not finite (grad_norm %v); rows ", w.GradNorm)
	}
	names := make([]string, 0, maxNames)
	for _, row := range w.Rows[:min(maxNames, len(w.Rows))] {
		names = append(names, name(row))
	}
	line += strings.Join(names, ", ")
	if more := len(w.Rows) - maxNames; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// head begins a line: "step  12/240".
func (p *Progress) head(step int64) string {
	if p.Total <= 0 {
		return fmt.Sprintf("step %6d", step)
	}
	total := strconv.FormatInt(p.Total, 10)
	return fmt.Sprintf("step %*d/%s", len(total), step, total)
}

func (p *Progress) losses(b *strings.Builder, loss float64, metrics []float64, skipped bool) {
	value := func(name string, v float64) {
		if skipped {
			v = math.NaN()
		}
		fmt.Fprintf(b, "  %s %5s", name, number(v))
	}
	value("loss", loss)
	for i, name := range p.Metrics {
		value(name, metrics[i])
	}
}

// ratio returns a/b, 0 when there is no b.
func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
