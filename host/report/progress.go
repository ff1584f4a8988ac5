package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/event"
)

// Progress writes the lines that a person, or a file behind a pipe, sees of a running training, and knows what a Bar
// shows. Its clock is the durations in the windows.
type Progress struct {
	// Metrics names the metrics of a window.
	Metrics []string
	// Total is the run's last step, 0 when it is not known: then there is no estimate of the time left.
	Total int64
	// Every says how many steps pass from line to line. 0 switches the lines off.
	Every int64
	// Bar says that a Bar shows speed and time left, so that lines have room without them.
	Bar bool
	// Bottleneck names what limits the pipeline. It is asked for a line whose input stall is high. Nil leaves the name out.
	Bottleneck func() string

	started bool
	all     span // behind the first window of this process
	since   span // behind the last line
	recent  struct{ steps, time, wait float64 }
	status  Status
}

// recall is the weight that recent steps lose with each new one: the speed in a Status is that of about 20 of them.
const recall = 0.95

// Status is where a run stands after a window.
type Status struct {
	Step, Total int64   // Total 0: not known
	Loss        float64 // NaN in a skipped window
	// StepsPerSecond and InputStall are means of the last steps. They are 0 up to the second.
	StepsPerSecond, InputStall float64
	// Left is the time to the end, 0 when it is not known.
	Left time.Duration
}

// span is a number of windows in a row.
type span struct {
	steps                int64
	time, wait, evaluate time.Duration
}

// Due reports whether Window will return a line.
func (p *Progress) Due(w *event.Step) bool {
	return p.Every > 0 && (!p.started || w.Step%p.Every == 0 || w.Step == p.Total)
}

// Window returns the line of a window, without a line end, or "" when none is due. Lines are due at the first window,
// at multiples of Every, and at the last. Speed and input stall are means since the line before.
func (p *Progress) Window(w *event.Step) string {
	first, due := !p.started, p.Due(w)
	p.started = true
	if !first { // the first waits for the pipeline to fill: it says nothing about the others
		p.count(w)
	}
	p.status.Step, p.status.Total, p.status.Loss, p.status.Left = w.Step, p.Total, w.Loss, p.left(w.Step)
	if w.Skipped {
		p.status.Loss = math.NaN()
	}
	if !due {
		return ""
	}
	line := p.line(w)
	p.since = span{}
	return line
}

func (p *Progress) count(w *event.Step) {
	for _, s := range []*span{&p.all, &p.since} {
		s.steps++
		s.time += w.Time
		s.wait += w.InputWait
	}
	r := &p.recent
	r.steps, r.time, r.wait = recall*r.steps+1, recall*r.time+w.Time.Seconds(), recall*r.wait+w.InputWait.Seconds()
	if r.time > 0 {
		p.status.StepsPerSecond, p.status.InputStall = r.steps/r.time, r.wait/r.time
	}
}

// left estimates the time to the end, with evaluations as often as before.
func (p *Progress) left(step int64) time.Duration {
	if p.Total <= step || p.all.steps == 0 {
		return 0
	}
	perStep := float64(p.all.time+p.all.evaluate) / float64(p.all.steps)
	return time.Duration(perStep * float64(p.Total-step))
}

// Status returns where the run stands after the last window.
func (p *Progress) Status() Status { return p.status }

func (p *Progress) line(w *event.Step) string {
	var b strings.Builder
	b.WriteString(head(w.Step, p.Total))
	p.losses(&b, w.Loss, w.Metrics, w.Skipped)
	fmt.Fprintf(&b, "  lr %.1e  grad_norm %5s", w.LR, number(w.GradNorm))
	stall := ratio(p.since.wait, p.since.time)
	if p.since.time > 0 && !p.Bar {
		fmt.Fprintf(&b, "  %5s steps/s", rate(float64(p.since.steps)/p.since.time.Seconds()))
	}
	if p.since.time > 0 && !p.Bar || stall >= stallLimit {
		fmt.Fprintf(&b, "  input stall %5s", percent(stall))
	}
	if stall >= stallLimit && p.Bottleneck != nil {
		fmt.Fprintf(&b, " (%s)", p.Bottleneck())
	}
	if left := p.status.Left; left > 0 && !p.Bar {
		b.WriteString("  eta " + duration(left))
	}
	return b.String()
}

// Evaluated returns the line of an evaluation. best says that it is the best so far.
func (p *Progress) Evaluated(e *event.Evaluation, best bool) string {
	p.all.evaluate += e.Time
	var b strings.Builder
	b.WriteString(head(e.Step, p.Total))
	p.losses(&b, e.Loss, e.Metrics, false)
	fmt.Fprintf(&b, "  evaluation of %s in %s", Count(int64(e.Samples), "row"), duration(e.Time))
	if best {
		b.WriteString(" (best)")
	}
	return b.String()
}

// maxNames is how many rows a line names.
const maxNames = 5

// Skipped returns the line of a skipped window, which says why and which rows were in it. name gives a row's id in the
// data set. Such a line is due at once, and whatever Every is.
func (p *Progress) Skipped(w *event.Step, name func(row int32) string) string {
	line := head(w.Step, p.Total) + "  skipped: "
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
func head(step, of int64) string {
	if of <= 0 {
		return fmt.Sprintf("step %6d", step)
	}
	total := strconv.FormatInt(of, 10)
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
