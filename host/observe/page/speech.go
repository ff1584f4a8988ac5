package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/chart"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// mostBreaks bounds the breaks of speech that the verdict names.
const mostBreaks = 3

// speech says in the verdict what the last evaluation has spoken like, and where speech broke. poor says that the model
// did not end half of the texts or more.
func speech(run *record.Run) (lines []string, poor bool) {
	last := run.Spoken.End()
	if len(last) == 0 || last[0].Ended == nil {
		return nil, false
	}
	cut := record.Cut(last)
	says := []string{fmt.Sprintf("%d of %s cut, because the model did not end", cut, units.Count(len(last), "text"))}
	if cut == 0 {
		says[0] = "the model ended all " + units.Count(len(last), "text")
		if len(last) == 1 {
			says[0] = "the model ended the text"
		}
	}
	for _, v := range record.Means(last) {
		if m := measured.Of(v.Name); m.Brief {
			says = append(says, m.Say(v.Value))
		}
	}
	lines = []string{fmt.Sprintf("Speech after step %s: %s.", Count(last[0].Step), strings.Join(says, ", "))}
	for i, b := range run.Spoken.Broke {
		if i == mostBreaks {
			lines = append(lines, fmt.Sprintf("It breaks after %d more evaluations: see the curves of speech.",
				len(run.Spoken.Broke)-i))
			break
		}
		text := fmt.Sprintf("Speech breaks after step %s", Count(b.Step))
		if lowest(run, b.Step) {
			text += ", although the loss is the lowest so far"
		}
		lines = append(lines, text+": "+b.How+".")
	}
	if run.Best != nil && run.Best.By == "" && len(run.Spoken.Broke) > 0 {
		lines = append(lines, "The best checkpoint is that of the lowest loss. --best-by spoken."+measured.MCD+
			" chooses it by the speech (docs/schedules.md).")
	}
	return lines, 2*cut >= len(last)
}

// lowest reports whether no evaluation before that of a step has so low a loss.
func lowest(run *record.Run, step int64) bool {
	at := run.Evaluations.At(step)
	if at == nil || at.Step != step {
		return false
	}
	for _, e := range run.Evaluations.All {
		if e.Step < step && e.Loss <= at.Loss {
			return false
		}
	}
	return true
}

// speechCurves are the chief measures of speech over the evaluations; nil for fewer than two of them.
func speechCurves(s *record.Spoken) (list []Figure) {
	if len(s.Cut.Bins) > 1 {
		list = append(list, speechCurve("cut", measured.Measure{Unit: "%"}, &s.Cut))
	}
	for i := range s.Course {
		if m := measured.Of(s.Course[i].Name); len(s.Course[i].Bins) > 1 && m.Brief {
			list = append(list, speechCurve(m.Title, m, &s.Course[i].Curve))
		}
	}
	return list
}

func speechCurve(title string, m measured.Measure, c *record.Curve) Figure {
	figure := m.Figure
	scale := 1.0
	if m.Unit == "%" {
		scale = 100
	}
	first, last := c.Bins[0], c.Bins[len(c.Bins)-1]
	caption := fmt.Sprintf("%s after step %s, %s after step %s.", figure(first.Mean()), Count(first.First),
		figure(last.Mean()), Count(last.Last))
	if worst := worst(c, m.Better); m.Better != measured.Neither && worst.Step > first.First && worst.Step < last.Last {
		caption += fmt.Sprintf(" The worst is %s after step %s.", figure(worst.Value), Count(worst.Step))
	}
	switch m.Better {
	case measured.Lower, measured.Higher, measured.NearOne:
		word := m.Better.String()
		caption += " " + strings.ToUpper(word[:1]) + word[1:] + " is better."
	}
	line := chart.Line{Color: 2, Dots: len(c.Bins) <= mostTouches}
	for _, b := range c.Bins {
		line.Points = append(line.Points, chart.Point{X: float64(b.Last), Y: scale * b.Mean(),
			Hint: fmt.Sprintf("%s after step %d: %s", title, b.Last, figure(b.Mean()))})
	}
	if m.Unit != "" {
		title += ", " + m.Unit
	}
	p := chart.Plot{Title: title, Describe: caption, XName: "step", Whole: true, FromZero: m.Unit == "%",
		Lines: []chart.Line{line}}
	return Figure{title, caption, p.SVG()}
}

// worst is the value of a measure that is farthest from what is better.
func worst(c *record.Curve, better measured.Better) record.Point {
	m := measured.Measure{Better: better}
	var list []record.Point
	for _, b := range c.Bins {
		list = append(list, record.Point{Step: b.MinAt, Value: b.Min}, record.Point{Step: b.MaxAt, Value: b.Max})
	}
	return slices.MaxFunc(list, func(a, b record.Point) int {
		return cmp.Compare(m.Judged(a.Value), m.Judged(b.Value))
	})
}
