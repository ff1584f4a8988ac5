package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Progress formats the lines that show the progress of a run. It measures time by the durations of the steps.
type Progress struct {
	// Run is the run. Its Total is 0 if the end is not known: then there is no estimate of the remaining time.
	Run event.Start
	// Bar says that a Bar shows speed and remaining time, so the lines omit them.
	Bar bool

	begun bool // by the first step of this process
	since span // the last line
	rate  event.Rate
}

// span is a number of steps in a row.
type span struct {
	steps      int64
	time, wait time.Duration
	bottleneck string // of the last one that waited long
}

func (s *span) add(w *event.Step) {
	s.steps++
	s.time += w.Time
	s.wait += w.InputWait
	if w.Bottleneck != "" {
		s.bottleneck = w.Bottleneck
	}
}

// Stalled reports whether a step waited so long for its batch that its line shall name what limits the run.
func Stalled(t event.Times) bool { return ratio(t.InputWait, t.Time) >= bottleneck.StallLimit }

// Step returns the line of a step, without a line end, or "" if none is due. Without a bar, one is also due when the
// steps since the last line took long. Speed and input stall are means since the previous line.
func (p *Progress) Step(w *event.Step) string {
	p.rate.Step(w)
	if p.begun {
		p.since.add(w)
	}
	p.begun = true // the first step waits for the pipeline to fill, so it is not typical
	late := p.Run.Every > 0 && !p.Bar && p.since.time >= silence
	if !late && !p.Run.Due(w.Step) {
		return ""
	}
	line := p.line(w)
	p.since = span{}
	return line
}

func (p *Progress) line(w *event.Step) string {
	var b strings.Builder
	b.WriteString(head(w.Step, p.Run.Total))
	p.losses(&b, w.Loss, w.Metrics, w.Skipped)
	fmt.Fprintf(&b, "  lr %.1e  grad_norm %5s", w.LR, norms(w))
	stall := ratio(p.since.wait, p.since.time)
	if p.since.time > 0 && !p.Bar {
		fmt.Fprintf(&b, "  %5s steps/s", units.Rate(float64(p.since.steps)/p.since.time.Seconds()))
	}
	if p.since.time > 0 && !p.Bar || stall >= bottleneck.StallLimit {
		fmt.Fprintf(&b, "  input stall %5s", units.Percent(stall))
	}
	if stall >= bottleneck.StallLimit && p.since.bottleneck != "" {
		fmt.Fprintf(&b, " (%s)", p.since.bottleneck)
	}
	if left := p.rate.Speed(w.Step, p.Run.Total).Left; left > 0 && !p.Bar {
		b.WriteString("  eta " + units.Duration(left))
	}
	return b.String()
}

// Work counts the time of a work besides the steps.
func (p *Progress) Work(w *event.Work) { p.rate.Work(w) }

// Evaluated returns the line of an evaluation.
func (p *Progress) Evaluated(e *event.Evaluation) string {
	var b strings.Builder
	b.WriteString("evaluation after " + head(e.Step, p.Run.Total))
	p.losses(&b, e.Loss, e.Metrics, false)
	fmt.Fprintf(&b, "  %s in %s", units.Count(int64(e.Samples), "row"), units.Duration(e.Time))
	if e.Best {
		b.WriteString(" (best)")
	}
	return b.String()
}

// norms returns the gradient norm of a step, with those of the other players after it.
func norms(w *event.Step) string {
	text := units.Number(w.GradNorm)
	for _, p := range w.Players[:max(0, len(w.Players)-1)] {
		text += fmt.Sprintf(" (%s %s)", p.Name, units.Number(p.GradNorm))
	}
	return text
}

// notFinite returns the gradient norm, or with several players those of the skipped ones.
func notFinite(w *event.Step) string {
	if len(w.Players) == 0 {
		return fmt.Sprint(w.GradNorm)
	}
	var list []string
	for _, p := range w.Players {
		if p.Skipped {
			list = append(list, fmt.Sprint(p.GradNorm))
		}
	}
	return strings.Join(list, ", ")
}

// Skipped returns the line of a skipped step, with the reason and the rows of the step. Such a line is due immediately,
// whatever the number of steps between lines.
func (p *Progress) Skipped(w *event.Step) string {
	line := head(w.Step, p.Run.Total) + "  skipped"
	if len(w.Players) > 0 {
		line += " by " + strings.Join(w.SkippedPlayers(), " and ")
	}
	line += ": "
	switch {
	case w.Samples() == 0:
		return line + "every row is empty"
	case math.IsNaN(w.Loss), math.IsInf(w.Loss, 0):
		line += fmt.Sprintf("the loss is not finite (%v); rows ", w.Loss)
	default:
		line += fmt.Sprintf("the gradients are not finite (grad_norm %s); rows ", notFinite(w))
	}
	named, more := strings.Join(w.Named, ", "), w.Samples()-len(w.Named)
	if len(w.Ranks) > 0 {
		named, more = rankRows(w.Ranks)
	}
	if line += named; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// rankRows names rows of the ranks whose loss is not finite, or of all ranks if it is not known which it was, and
// returns how many more there are.
func rankRows(all []event.RankRows) (text string, more int) {
	suspect := func(r event.RankRows) bool { return r.Bad }
	if !slices.ContainsFunc(all, suspect) {
		suspect = func(r event.RankRows) bool { return r.Samples > 0 }
	}
	ranks := 0
	for _, r := range all {
		if suspect(r) {
			ranks++
		}
	}
	var parts []string
	for rank, r := range all {
		if !suspect(r) {
			continue
		}
		names := r.Named[:min(len(r.Named), max(1, event.MaxNamed/ranks))]
		if more += r.Samples; len(parts) < event.MaxNamed {
			parts = append(parts, fmt.Sprintf("%s of rank %d", strings.Join(names, ", "), rank))
			more -= len(names)
		}
	}
	return strings.Join(parts, ", "), more
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
		fmt.Fprintf(b, "  %s %5s", name, units.Number(v))
	}
	value("loss", loss)
	for i, name := range p.Run.Metrics {
		value(name, metrics[i])
	}
}

// ratio returns a/b, 0 if b is 0.
func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
