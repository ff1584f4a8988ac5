package datacheck

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// mostExamples limits the lines of each finding. The JSON has all.
const mostExamples = 5

// text writes the report for a person.
type text struct {
	out   *bufio.Writer
	clean *int // kinds of findings of which there is none
}

func (t text) line(label, format string, args ...any) {
	line := fmt.Sprintf("%-12s %s", label, visible.Text(fmt.Sprintf(format, args...)))
	fmt.Fprintln(t.out, strings.TrimRight(line, " "))
}

func (r *Report) write(out io.Writer) error {
	t := text{bufio.NewWriter(out), new(int)}
	t.line("list", "%s: %s, checked for %s", r.List, units.Count(r.Lines, "line"), r.Bundle)
	label := "layout"
	for _, l := range r.Layout.Lines() {
		t.line(label, "%s", strings.TrimPrefix(l, "layout "))
		label = ""
	}
	t.line("usable", "%s, %s", units.Count(r.Usable.Clips, "clip"), units.Length(r.Usable.Seconds))
	t.line("trained", "%s (%s), %s (%s) by default", units.Count(r.Trained.Clips, "clip"), percent(r.Trained.ClipShare),
		units.Length(r.Trained.Seconds), percent(r.Trained.SecondShare))
	if r.Trained.fit != "" {
		t.line("", "%s", r.Trained.fit)
	}
	if n := r.undecoded(); n > 0 {
		t.line("", "less %s that cannot be decoded, which a run leaves out when it reads them", units.Count(n, "clip"))
	}
	for _, l := range r.Trained.Lines() {
		t.line("", "%s", l)
	}
	r.validation(t)
	t.groups("speakers", r.Speakers)
	t.groups("languages", r.Languages)
	if r.noLanguages != "" {
		t.line("", "%s", r.noLanguages)
	}
	if !r.LanguagesUsed &&
		(len(r.Languages) > 1 || len(r.Languages) == 1 && r.Languages[0].Name != dataset.DefaultLanguage) {
		t.line("", "%s has no languages: it takes all texts alike", r.Bundle)
	}
	t.groups("rates", r.SampleRates)
	t.groups("channels", r.Channels)
	if r.Usable.Clips > 0 {
		t.distribution("duration", "s", r.Duration)
		t.distribution("speed", "characters/s", r.Rate)
		t.distribution("level", "dB", r.Level)
		t.line("silence", "%s of the time", percent(r.Measures.Silence))
		for _, s := range r.Steps {
			t.line("steps", "%s: %.0f to %.0f, median %.0f; per second %.2f to %.2f, median %.2f",
				strings.Join(s.Columns, ", "), s.Steps.Min, s.Steps.Max, s.Steps.Median, s.Rate.Min, s.Rate.Max,
				s.Rate.Median)
		}
	}
	r.findings(t)
	return t.out.Flush()
}

// undecoded counts the clips that no run can decode, which its start does not know.
func (r *Report) undecoded() (n int) {
	for _, u := range r.Unusable {
		if u.Stage == "decode" {
			n++
		}
	}
	return n
}

func (r *Report) findings(t text) {
	fmt.Fprintln(t.out)
	t.finding(len(r.Unusable), r.Allowed, "%s cannot be used (%d allowed)",
		[]any{units.Count(len(r.Unusable), "line"), r.Allowed}, func(i int) string {
			u := r.Unusable[i]
			return fmt.Sprintf("%s: %s", u.Line.text(), u.Reason)
		})
	if r.remedy != "" && r.empty == nil { // else the hint says it
		t.line("", "%s", r.remedy)
	}
	t.finding(len(r.Excluded), r.Usable.Clips-1, "%s too long for the model",
		[]any{units.Count(len(r.Excluded), "line")}, func(i int) string {
			return fmt.Sprintf("%s: %s", r.Excluded[i].Line.text(), r.Excluded[i].Reason)
		})
	t.finding(len(r.IgnoredKeys), math.MaxInt, "%s that a run ignores", []any{units.Count(len(r.IgnoredKeys), "key")},
		func(i int) string {
			k := r.IgnoredKeys[i]
			advice := ""
			if k.Advice != "" {
				advice = "; " + k.Advice
			}
			return fmt.Sprintf("%q: %s, first in %s%s", k.Key, units.Count(k.Lines, "line"), k.Place, advice)
		})
	t.finding(len(r.UnknownCharacters), math.MaxInt, "%s not in the tokenizer's vocabulary",
		[]any{units.Count(len(r.UnknownCharacters), "character")}, func(i int) string {
			c := r.UnknownCharacters[i]
			return fmt.Sprintf("%s '%s': %s, first in %s, encoded as %s", c.Code, c.Char, units.Count(c.Count, "time"),
				c.First, c.As)
		})
	lines := func(groups [][]Line) func(i int) string {
		return func(i int) string { return linesText(groups[i]) }
	}
	t.finding(len(r.SameAudio), math.MaxInt, "%s with the same samples", []any{units.Count(len(r.SameAudio), "group")},
		lines(r.SameAudio))
	t.finding(len(r.SameText), math.MaxInt, "%s with the same text", []any{units.Count(len(r.SameText), "group")},
		lines(r.SameText))
	t.finding(len(r.Clipped), math.MaxInt, "%s with samples at full scale", []any{units.Count(len(r.Clipped), "clip")},
		func(i int) string {
			return fmt.Sprintf("%s: %s", r.Clipped[i].Line.text(), units.Count(r.Clipped[i].Samples, "sample"))
		})
	t.finding(len(r.LongSilence), math.MaxInt, "%s with more than %g s of silence at an end",
		[]any{units.Count(len(r.LongSilence), "clip"), longSilence}, func(i int) string {
			s := r.LongSilence[i]
			return fmt.Sprintf("%s: %.1f s before, %.1f s after", s.Line.text(), s.Leading, s.Trailing)
		})
	t.finding(len(r.OddRate), math.MaxInt, "%s with much more or less text than others of their length",
		[]any{units.Count(len(r.OddRate), "clip")}, func(i int) string {
			return fmt.Sprintf("%s: %.1f characters/s, the median is %.1f", r.OddRate[i].Line.text(), r.OddRate[i].Rate,
				r.Rate.Median)
		})
	t.finding(len(r.OddRecordings), math.MaxInt, "%s of recordings with something wrong",
		[]any{units.Count(len(r.OddRecordings), "clip")}, func(i int) string {
			return fmt.Sprintf("%s: %s", r.OddRecordings[i].Line.text(), r.OddRecordings[i].Remark)
		})
	r.textFindings(t)
	fmt.Fprintf(t.out, "✓ no finding of %s (docs/data-check.md)\n", units.Count(*t.clean, "other kind"))
}

// finding writes a line for n findings, unless there is none, and some examples. With more than allowed of them, a run
// refuses the list.
func (t text) finding(n, allowed int, format string, args []any, example func(i int) string) {
	if n == 0 {
		*t.clean++
		return
	}
	mark := "-"
	if n > allowed {
		mark = "✗"
	}
	fmt.Fprintf(t.out, "%s %s\n", mark, fmt.Sprintf(format, args...))
	for i := range min(n, mostExamples) {
		t.line("", "%s", example(i))
	}
	if more := n - mostExamples; more > 0 {
		t.line("", "and %s more (--json lists all)", units.Thousands(more))
	}
}

// groups writes the largest groups.
func (t text) groups(label string, groups []Group) {
	var list []string
	for i, g := range groups {
		if i == mostExamples {
			list = append(list, fmt.Sprintf("and %d more", len(groups)-mostExamples))
			break
		}
		name := g.Name
		if name == "" {
			name = "without a name"
		}
		list = append(list, fmt.Sprintf("%s (%s, %s)", name, units.Count(g.Clips, "clip"), units.Length(g.Seconds)))
	}
	t.line(label, "%d: %s", len(groups), strings.Join(list, ", "))
}

// distribution writes figures and a histogram. A line of its own stands for neighbouring bins without a clip: a few
// outliers would make many.
func (t text) distribution(label, unit string, d Distribution) {
	t.line(label, "%.2f to %.2f %s, mean %.2f, median %.2f", d.Min, d.Max, unit, d.Mean, d.Median)
	h, most := d.Histogram, 0
	for _, n := range h.Counts {
		most = max(most, n)
	}
	for i, n := range h.Counts {
		if n == 0 {
			if i > 0 && h.Counts[i-1] > 0 {
				t.line("", "%8s ┆", "")
			}
			continue
		}
		const room = 40
		bar := strings.Repeat("█", (n*room+most-1)/most)
		t.line("", "%8s │%s %s", bound(h, i), bar, units.Thousands(n))
	}
}

// bound writes the lower end of a bin with the decimals that its width needs.
func bound(h Histogram, i int) string {
	decimals := 0
	for w := h.Width; w < 0.999; w *= 10 {
		decimals++
	}
	return fmt.Sprintf("%.*f", decimals, h.Start+float64(i)*h.Width)
}

func (l Line) text() string {
	if l.ID == "" {
		return fmt.Sprintf("line %d", l.Line)
	}
	return fmt.Sprintf("line %d, %s", l.Line, l.ID)
}

func linesText(lines []Line) string {
	var list []string
	for i, l := range lines {
		if i == mostExamples {
			list = append(list, fmt.Sprintf("and %d more", len(lines)-mostExamples))
			break
		}
		list = append(list, l.text())
	}
	return strings.Join(list, "; ")
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
