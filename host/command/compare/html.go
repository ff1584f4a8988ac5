package compare

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/chart"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

//go:embed compare.html
var source string

var body = template.Must(page.Template("compare", source))

// view is what the template has.
type view struct {
	*Result
	Headline, Verdict string
	Tone              string
	Table, Varied     *page.Table
	Settings          *page.Table
	Speeds, Losses    []page.Figure
	Texts             []page.Text
	Linked            int
	Now               time.Time
}

// page is the comparison as a page, which is written to a file.
func (r *Result) page(all []*record.Run, file string) ([]byte, error) {
	v := &view{Result: r, Headline: r.headline(), Verdict: r.verdict(), Tone: "good", Now: time.Now()}
	if !r.ComparableSpeed || !r.ComparableLosses || r.spoke() && !r.ComparableSpeech {
		v.Tone = "warn"
	}
	head := []string{""}
	for _, run := range r.Runs {
		head = append(head, run.Letter)
	}
	var rows, settings [][]string
	for _, row := range r.rows() {
		rows = append(rows, append([]string{row.Whole}, row.Cells...))
	}
	v.Table = page.NewTable("Figures of the runs", kinds(len(r.Runs), "n"), head, rows...)
	for _, d := range r.Differences {
		settings = append(settings, append([]string{"--" + d.Name}, d.Values...))
	}
	if len(settings) > 0 {
		v.Settings = page.NewTable("Settings that differ", kinds(len(r.Runs), "t"), head, settings...)
	}
	v.Speeds = []page.Figure{r.speeds()}
	if s := r.Sweep; s != nil {
		lines := s.table(r)
		v.Varied = page.NewTable(s.title(r), "--nnnn-", lines[0],
			lines[1:]...)
		v.Speeds = append(v.Speeds, s.figure(r))
	}
	v.Losses = r.losses(all)
	media := page.NewMedia(page.MostMedia)
	v.Texts = texts(r, all, media, func(folder string) string { return page.PathTo(folder, file) })
	v.Linked = media.Linked
	var b bytes.Buffer
	if err := body.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("page of the comparison: %w", err)
	}
	return page.Document("Comparison of runs", template.HTML(b.String()))
}

// kinds are the kinds of the columns of a table of runs.
func kinds(runs int, kind string) string {
	text := "-"
	for range runs {
		text += kind
	}
	return text
}

// headline is the speed-up of the run that trains the most frames.
func (r *Result) headline() string {
	best := 0
	for i := range r.Runs {
		if up := r.Runs[i].SpeedUpFrames; up != nil && (best == 0 || up.Value > r.Runs[best].SpeedUpFrames.Value) {
			best = i
		}
	}
	if best == 0 {
		return "The speeds cannot be compared: a run has no steps that count."
	}
	up := r.Runs[best].SpeedUpFrames
	if up.Value < 1 && len(r.Runs) > 2 {
		return fmt.Sprintf("No run trains more frames per second than %s, the baseline; the next, %s, trains %s "+
			"times as "+
			"many.", r.Runs[0].Letter, r.Runs[best].Letter, ratio(up.Value))
	}
	text := fmt.Sprintf("%s trains %s times as many frames per second as %s", r.Runs[best].Letter, ratio(up.Value),
		r.Runs[0].Letter)
	if up.Low != nil {
		text += fmt.Sprintf(" (95 %%: %s to %s)", ratio(*up.Low), ratio(*up.High))
	}
	return text + "."
}

// color is that of a run.
func color(i int) int { return min(i, 6) + 1 }

// speeds are the frames per second of each run, with their intervals.
func (r *Result) speeds() page.Figure {
	p := chart.Plot{Title: "Frames per second", XName: "run", FromZero: true, Whole: true, Inset: true,
		XFormat: func(v float64) string {
			if i := int(v) - 1; i >= 0 && i < len(r.Runs) {
				return r.Runs[i].Letter
			}
			return ""
		}}
	for i := range r.Runs {
		f := r.Runs[i].FramesPerSecond
		at := chart.Point{X: float64(i + 1), Y: f.Value,
			Hint: fmt.Sprintf("%s: %s frames/s", r.Runs[i].Letter, page.Rate(f.Value))}
		if f.Low != nil {
			at.Low, at.High = *f.Low, *f.High
			at.Hint += fmt.Sprintf(", 95 %%: %s to %s", page.Rate(*f.Low), page.Rate(*f.High))
		}
		p.Describe += at.Hint + ". "
		p.Lines = append(p.Lines, chart.Line{Color: color(i), Dots: true, Alone: true, Points: []chart.Point{at}})
	}
	return page.Figure{Title: p.Title, Caption: "The lines are 95 % confidence intervals.", SVG: p.SVG()}
}

// figure are the frames per second over the setting in which the runs differ.
func (s *Sweep) figure(r *Result) page.Figure {
	name := "--" + s.Setting
	if s.Unit != "" {
		name += ", " + s.Unit
	}
	measured := chart.Line{Name: "measured", Color: 1, Dots: true, Alone: true}
	ideal := chart.Line{Name: "ideal", Color: 7, Dashed: true}
	p := chart.Plot{Title: "Frames per second over --" + s.Setting, XName: name, FromZero: true, Inset: true}
	mean := chart.Line{Color: 1, Thin: true}
	for _, at := range s.Points {
		f := r.Runs[at.Run].FramesPerSecond
		if f.Value == 0 {
			continue
		}
		dot := chart.Point{X: at.X, Y: f.Value,
			Hint: fmt.Sprintf("%s (%s): %s frames/s", at.Value, r.Runs[at.Run].Letter, page.Rate(f.Value))}
		if f.Low != nil {
			dot.Low, dot.High = *f.Low, *f.High
		}
		p.Describe += dot.Hint + ". "
		measured.Points = append(measured.Points, dot)
		if n := len(mean.Points); n == 0 || mean.Points[n-1].X != at.X { // runs of one value have one point of the line
			mean.Points = append(mean.Points, chart.Point{X: at.X, Y: s.mean(r.Runs, at.X)})
		}
		if at.Ideal != nil {
			ideal.Points = append(ideal.Points, chart.Point{X: at.X, Y: *at.Ideal})
		}
	}
	p.Lines = []chart.Line{mean, measured}
	caption := "The lines at the points are 95 % confidence intervals."
	if s.Ideal {
		p.Lines = []chart.Line{ideal, mean, measured}
		caption += " Ideal: a larger batch takes no more time than the smallest one."
	}
	return page.Figure{Title: p.Title, Caption: caption, SVG: p.SVG()}
}

// losses are the curves of the runs over steps and over the time of steps, and the evaluations.
func (r *Result) losses(all []*record.Run) []page.Figure {
	var steps, seconds, evaluations []chart.Line
	describe := ""
	for i, run := range all {
		name := r.Runs[i].Letter
		describe += fmt.Sprintf("%s from %s to %s. ", name, units.Number(run.Steps.First), units.Number(run.Steps.Last))
		byStep := chart.Line{Name: name, Color: color(i), Thin: true}
		byTime := byStep
		for _, p := range thinned(run.Steps.Pieces) {
			byStep.Points = append(byStep.Points, chart.Point{X: float64(p.Last), Y: p.Loss / p.Losses})
			byTime.Points = append(byTime.Points, chart.Point{X: p.Ms / 1e3, Y: p.Loss / p.Losses})
		}
		steps, seconds = append(steps, byStep), append(seconds, byTime)
		e := chart.Line{Name: name, Color: color(i), Dots: len(run.Evaluations.All) <= 64}
		for _, v := range run.Evaluations.All {
			e.Points = append(e.Points, chart.Point{X: float64(v.Step), Y: v.Loss,
				Hint: fmt.Sprintf("%s after step %d: %s", name, v.Step, units.Number(v.Loss))})
		}
		if len(e.Points) > 0 {
			evaluations = append(evaluations, e)
		}
	}
	list := []page.Figure{
		plot("Training loss at equal steps", "step", describe, steps, true),
		plot("Training loss at equal time", "seconds of steps", describe, seconds, false),
	}
	if len(evaluations) > 0 {
		list = append(list, plot("Validation loss", "step", describe, evaluations, true))
	}
	return list
}

func plot(title, x, describe string, lines []chart.Line, whole bool) page.Figure {
	p := chart.Plot{Title: title, XName: x, Describe: describe, Lines: lines, LogFrom: 3, Whole: whole,
		Ends: true}
	return page.Figure{Title: title, SVG: p.SVG()}
}

// mostPoints bounds the points of a curve.
const mostPoints = 500

// thinned joins pieces to at most so many. Ms is then the time of all pieces so far.
func thinned(pieces []record.Piece) (list []record.Piece) {
	every := (len(pieces) + mostPoints - 1) / mostPoints
	total := 0.0
	for from := 0; from < len(pieces); from += every {
		var sum record.Piece
		for _, p := range pieces[from:min(len(pieces), from+every)] {
			sum.Loss, sum.Losses, sum.Last = sum.Loss+p.Loss, sum.Losses+p.Losses, p.Last
			total += p.Ms
		}
		if sum.Ms = total; sum.Losses > 0 && !math.IsInf(total, 0) {
			list = append(list, sum)
		}
	}
	return list
}
