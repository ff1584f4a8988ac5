package page

import (
	"fmt"
	"html/template"
	"math"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/chart"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Figure is a chart with its title and a caption.
type Figure struct {
	Title, Caption string
	SVG            template.HTML
}

// curves are those over the steps.
func curves(run *record.Run) []Figure {
	if run.Steps.Count == 0 {
		return nil
	}
	list := []Figure{lossCurve(run)}
	s := run.Steps
	for _, c := range []struct {
		title, unit string
		curve       *record.Curve
		color       int
		log         float64
	}{
		{"Gradient norm", "", &s.GradNorm, 5, 10}, {"Learning rate", "", &s.LR, 6, 0},
		{"Step time", " ms", &s.Ms, 3, 20},
	} {
		if len(c.curve.Bins) == 0 {
			continue
		}
		low, high := extremes(c.curve)
		caption := fmt.Sprintf("From %s to %s%s.", units.Number(low), units.Number(high), c.unit)
		if low == high {
			caption = fmt.Sprintf("%s%s at every step.", units.Number(low), c.unit)
		}
		if c.curve.Width > 1 {
			caption += " " + binned(c.curve)
		}
		p := chart.Plot{Title: c.title, Describe: caption, XName: "step", Whole: true, LogFrom: c.log,
			Lines: append(course(c.curve, "", c.color),
				touches(c.curve, c.title, c.unit))}
		list = append(list, Figure{c.title, caption, p.SVG()})
	}
	return list
}

// binned says how many steps are drawn as one.
func binned(c *record.Curve) string {
	return fmt.Sprintf("The line is the mean of each %s, the band their smallest and largest.",
		units.Count(c.Width, "step"))
}

func extremes(c *record.Curve) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, b := range c.Bins {
		low, high = min(low, b.Min), max(high, b.Max)
	}
	return low, high
}

func pointsOf(points []record.Point) (list []chart.Point) {
	for _, p := range points {
		list = append(list, chart.Point{X: float64(p.Step), Y: p.Value})
	}
	return list
}

// course draws a curve: its values, or its extremes behind the means of its bins.
func course(c *record.Curve, name string, color int) []chart.Line {
	if c.Width <= 1 {
		return []chart.Line{{Name: name, Color: color, Points: pointsOf(c.Points()), Thin: true}}
	}
	return []chart.Line{
		{Color: color, Points: pointsOf(c.Points()), Faint: true},
		{Name: name, Color: color, Points: pointsOf(c.Means())},
	}
}

// mostTouches bounds the places of a curve that say their values where the mouse rests.
const mostTouches = 64

// touches are points that say the values of a curve, and are not drawn.
func touches(c *record.Curve, name, unit string) chart.Line {
	l := chart.Line{Alone: true}
	every := (len(c.Bins) + mostTouches - 1) / mostTouches
	for i := 0; i < len(c.Bins); i += every {
		b := c.Bins[i]
		mean := b.Mean()
		hint := fmt.Sprintf("%s at step %d: %s%s", name, b.Last, units.Number(mean), unit)
		if b.N > 1 {
			hint = fmt.Sprintf("%s of steps %d to %d: %s to %s%s, mean %s", name, b.First, b.Last, units.Number(b.Min),
				units.Number(b.Max), unit, units.Number(mean))
		}
		l.Points = append(l.Points, chart.Point{X: float64(b.Last), Y: mean, Hint: hint})
	}
	return l
}

// lossCurve has the training loss, that of the evaluations, and the best of them.
func lossCurve(run *record.Run) Figure {
	s, e := run.Steps, run.Evaluations
	caption := fmt.Sprintf("Training loss from %s to %s, the lowest %s at step %s.", units.Number(s.First),
		units.Number(s.Last), units.Number(s.Best), Count(s.BestStep))
	lines := course(&s.Loss, "training", 1)
	lines = append(lines, touches(&s.Loss, "training loss", ""))
	if len(e.All) > 0 {
		dots := chart.Line{Name: "evaluation", Color: 2, Dots: len(e.All) <= mostTouches}
		for _, v := range e.All {
			hint := fmt.Sprintf("evaluation after step %d: %s", v.Step, units.Number(v.Loss))
			dots.Points = append(dots.Points, chart.Point{X: float64(v.Step), Y: v.Loss, Hint: hint})
		}
		lines = append(lines, dots)
	}
	if b := e.Best; b != nil {
		best := "the best loss"
		if run.Best.By != "" {
			best = "the best by " + run.Best.By + " has the loss"
		}
		caption += fmt.Sprintf(" %s, %s %s at step %s, the last %s.", units.Count(e.Count, "evaluation"), best,
			units.Number(b.Loss), Count(b.Step), units.Number(e.All[len(e.All)-1].Loss))
		hint := fmt.Sprintf("the best evaluation: %s after step %d", units.Number(b.Loss), b.Step)
		lines = append(lines, chart.Line{Name: "best", Color: 3, Dots: true, Alone: true,
			Points: []chart.Point{{X: float64(b.Step), Y: b.Loss, Hint: hint}}})
	}
	if s.Skipped > 0 {
		caption += fmt.Sprintf(" %s skipped, shown at the loss before.", units.Count(s.Skipped, "step"))
		lines = append(lines, skips(&s.Skips))
	}
	p := chart.Plot{Title: "Loss", Describe: caption, XName: "step", Whole: true, Lines: lines, LogFrom: 3}
	if s.Loss.Width > 1 {
		caption += " " + binned(&s.Loss)
	}
	return Figure{"Loss", caption, p.SVG()}
}

// skips marks the steps that were skipped.
func skips(c *record.Curve) chart.Line {
	l := chart.Line{Name: "skipped", Color: 4, Dots: true, Alone: true}
	for _, b := range c.Bins {
		hint := fmt.Sprintf("step %d was skipped", b.First)
		if b.N > 1 {
			hint = fmt.Sprintf("%d steps from %d to %d were skipped", b.N, b.First, b.Last)
		}
		l.Points = append(l.Points, chart.Point{X: float64(b.Last), Y: b.Mean(), Hint: hint})
	}
	return l
}

// The phases of a step, which add up to it, with their colours. All before them are of a batch.
var stepPhases = map[string]int{"wait": 4, "train": 1, "optimizer": 5, "other": 7}

// phases are the parts of a step, and what is done beside it.
func phases(r *report.Report) []Figure {
	step := chart.Bar{Name: "a step"}
	var beside, onGPU []chart.Bar
	sum := 0.0
	for i, p := range r.PhasesMs[:min(len(r.PhasesMs), 40)] {
		part := chart.Part{Name: p.Name, Value: p.Ms, Text: Milliseconds(p.Ms), Color: stepPhases[p.Name]}
		switch {
		case part.Color > 0:
			step.Parts = append(step.Parts, part)
			sum += p.Ms
		case i > 0 && (p.Name == "gpu_train" || p.Name == "gpu_optimizer" || p.Name == "gpu_transfer"):
			onGPU = append(onGPU, chart.Bar{Name: p.Name[4:] + " on the GPU", Text: part.Text,
				Parts: []chart.Part{{Value: p.Ms, Text: part.Text, Color: 2}}})
		default:
			beside = append(beside, chart.Bar{Name: p.Name, Text: part.Text,
				Parts: []chart.Part{{Value: p.Ms, Text: part.Text, Color: 6}}})
		}
	}
	if len(step.Parts) == 0 {
		return nil
	}
	step.Text = Milliseconds(sum)
	rows := append([]chart.Bar{step}, onGPU...)
	b := chart.Bars{Title: "A step", Describe: describe(rows), Rows: rows}
	list := []Figure{{"A step", "Mean times. In the red part, training waits for a batch.", b.SVG()}}
	if len(beside) > 0 {
		largest := sum
		for _, p := range r.PhasesMs {
			largest = max(largest, p.Ms)
		}
		b = chart.Bars{Title: "A batch, in parallel", Describe: describe(beside), Rows: beside, Largest: largest}
		list = append(list, Figure{"A batch, in parallel",
			"Mean working times of each batch, on the scale of a step. They overlap with training and with each " +
				"other.",
			b.SVG()})
	}
	return list
}

func describe(rows []chart.Bar) (text string) {
	for i := range rows {
		text += rows[i].Describe() + ". "
	}
	return text
}

// memory are the peaks of each device and its limit.
func memory(r *report.Report) []Figure {
	var rows []chart.Bar
	for _, m := range r.Memory[:min(len(r.Memory), 32)] {
		peak, what := m.ProcessPeakBytes, "processes"
		if peak <= 0 {
			peak, what = m.ArenaPeakBytes, "arenas"
		}
		if peak <= 0 {
			continue
		}
		row := chart.Bar{Name: m.Device + ", " + m.Role, Text: Size(peak)}
		arena := min(max(m.ArenaPeakBytes, 0), peak)
		if arena > 0 {
			row.Parts = append(row.Parts, chart.Part{Name: "arenas", Value: float64(arena), Text: Size(arena),
				Color: 1})
		}
		if what == "processes" {
			row.Parts = append(row.Parts,
				chart.Part{Name: "rest of the processes", Value: float64(peak - arena), Text: Size(peak - arena),
					Color: 6})
		}
		if m.LimitBytes > 0 {
			row.Limit = float64(m.LimitBytes)
			row.Text += " of " + Size(m.LimitBytes) + " (" + Percent(float64(peak)/float64(m.LimitBytes)) + ")"
		} else {
			row.Text += ", no limit"
		}
		rows = append(rows, row)
	}
	var list []Figure
	if len(rows) > 0 {
		b := chart.Bars{Title: "Memory", Describe: describe(rows), Rows: rows}
		list = append(list, Figure{"Memory at the peak",
			"A line across a bar is the limit of the device for this role.", b.SVG()})
	}
	return append(list, utilization(r)...)
}

// utilization are the shares of time in which devices were busy.
func utilization(r *report.Report) []Figure {
	var rows []chart.Bar
	for _, u := range r.Utilization[:min(len(r.Utilization), 32)] {
		if !u.Measured() {
			continue
		}
		text := Percent(u.Mean)
		if u.Samples > 1 {
			text += " ± " + Percent(u.Std)
		}
		rows = append(rows, chart.Bar{Name: u.Device + ", " + u.Role, Text: text,
			Parts: []chart.Part{{Value: u.Mean, Text: text, Color: 3}}})
	}
	if len(rows) == 0 {
		return nil
	}
	b := chart.Bars{Title: "Utilization", Describe: describe(rows), Rows: rows, Largest: 1}
	return []Figure{{"Utilization", "The share of time in which the device was busy.", b.SVG()}}
}
