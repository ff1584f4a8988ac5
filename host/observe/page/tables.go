package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/chart"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Table is a table whose first column names the rows.
type Table struct {
	Caption string
	Head    []Cell
	Rows    [][]Cell
	// Closed hides the table until it is opened.
	Closed bool
}

// Cell is a text, or a number if Class is "n".
type Cell struct{ Text, Class string }

// mostRows bounds the rows of a table.
const mostRows = 200

// NewTable makes a table. The columns of numbers are those from the second on for which kinds has an n, a t has long
// texts, and an h has hashes.
func NewTable(caption, kinds string, head []string, rows ...[]string) *Table {
	t := &Table{Caption: caption}
	class := func(i int) string {
		if i < len(kinds) && kinds[i] != '-' {
			return kinds[i : i+1]
		}
		return ""
	}
	for i, text := range head {
		t.Head = append(t.Head, Cell{text, class(i)})
	}
	for n, row := range rows {
		if n == mostRows {
			t.Caption += fmt.Sprintf("; %d more rows are left out", len(rows)-n)
			break
		}
		var cells []Cell
		for i, text := range row {
			cells = append(cells, Cell{text, class(i)})
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// mostOpen is the number of rows of a list that is open. A longer one, in which a reader looks for a few rows, would
// hide what follows it.
const mostOpen = 24

// folded closes a table of many rows.
func (t *Table) folded() *Table {
	if len(t.Rows) > mostOpen {
		t.Closed = true
		t.Caption += ": " + Count(int64(len(t.Rows))) + " rows"
	}
	return t
}

// results are the tables of evaluations and of the predictors without a model.
func results(run *record.Run, r *report.Report) (list []Table) {
	if e := run.Evaluations; len(e.All) > 0 {
		shown, names := notable(&e)
		head, loss := []string{"evaluation"}, []string{"loss"}
		for i, v := range shown {
			head = append(head, fmt.Sprintf("%s (step\u00a0%s)", names[i], Count(v.Step)))
			loss = append(loss, units.Number(v.Loss))
		}
		rows := [][]string{loss}
		for _, m := range shown[0].Metrics {
			row := []string{m.Name}
			for _, v := range shown {
				row = append(row, metric(v, m.Name))
			}
			rows = append(rows, row)
		}
		list = append(list, *NewTable(units.Count(e.Count, "evaluation")+" on validation data", "-nnn", head, rows...))
	}
	var rows [][]string
	for _, b := range r.Baselines[:min(len(r.Baselines), mostRows)] {
		n := func(v report.Float) string { return units.Number(float64(v)) }
		rows = append(rows, []string{b.Metric + ", training", n(b.Constant), n(b.PreviousFrame), n(b.TrainMeanLast20),
			share(b.RatioTrain)})
		if b.EvalRows > 0 {
			rows = append(rows, []string{b.Metric + ", held out", n(b.EvalConstant), n(b.EvalPreviousFrame), n(b.Eval),
				share(b.RatioEval)})
		}
	}
	if len(rows) > 0 {
		list = append(list, *NewTable("Compared with predictors without a model", "-nnnn",
			[]string{"metric", "constant", "previous frame", "model", "model / constant"}, rows...))
	}
	return list
}

// notable are the first, the best and the last evaluation, each once.
func notable(e *record.Evaluations) (list []*record.Evaluation, names []string) {
	add := func(v *record.Evaluation, name string) {
		if n := len(list) - 1; v == nil {
			return
		} else if n >= 0 && list[n].Step == v.Step {
			names[n] += ", " + name
			return
		}
		list, names = append(list, v), append(names, name)
	}
	add(&e.All[0], "first")
	add(e.Best, "best")
	add(&e.All[len(e.All)-1], "last")
	return list, names
}

func share(v report.Float) string { return Percent(float64(v)) }

func metric(e *record.Evaluation, name string) string {
	for _, m := range e.Metrics {
		if m.Name == name {
			return units.Number(m.Value)
		}
	}
	return "-"
}

func timeTables(r *report.Report) []Table {
	if r.StepMs.Steps <= 0 {
		return nil
	}
	row := func(name string, d report.Distribution) []string {
		return []string{name, Count(d.Steps), Milliseconds(d.Mean), Milliseconds(d.Std), Percent(d.Variation),
			Milliseconds(d.Min), Milliseconds(d.P50), Milliseconds(d.P99), Milliseconds(d.Max)}
	}
	rows := [][]string{row("all", r.StepMs.Distribution)}
	for _, bucket := range slices.Sorted(maps.Keys(r.StepMs.ByBucket)) {
		rows = append(rows, row(fmt.Sprintf("bucket %d", bucket), r.StepMs.ByBucket[bucket]))
	}
	list := []Table{*NewTable("Step times by bucket", "-nnnnnnnn",
		[]string{"steps of", "number", "mean", "std", "variation", "min", "p50", "p99", "max"}, rows...)}
	if len(r.Ranks) > 0 {
		list = append(list, *ranks(r.Ranks))
	}
	if a := r.Adaptive; a != nil && len(a.List) > 0 {
		list = append(list, *adapted(a))
	}
	return list
}

// adapted is the table of what --adaptive has changed.
func adapted(a *report.Adaptive) *Table {
	names := map[string]string{event.Depth: "batches ahead", event.Decoders: "decoders"}
	var rows [][]string
	for _, c := range a.List {
		name := names[c.What]
		if name == "" {
			name = "processes of " + c.What
		}
		rows = append(rows, []string{Count(c.Step), name, Count(int64(c.From)), Count(int64(c.To)), c.Why})
	}
	title := fmt.Sprintf("What --adaptive changed; %s ahead at most, of %d", units.Count(a.Depth.Largest, "batch"),
		a.Depth.Limit)
	return NewTable(title, "--nnt", []string{"before step", "number of", "from", "to", "why"}, rows...).folded()
}

// ranks is the table of the processes of a run of several.
func ranks(all []report.Rank) *Table {
	var rows [][]string
	for _, one := range all {
		memory := "-"
		for _, m := range one.Memory {
			if m.ProcessPeakBytes > 0 {
				memory = Size(m.ProcessPeakBytes)
				break
			}
		}
		rows = append(rows, []string{fmt.Sprint(one.Rank), one.Host, one.Device, Milliseconds(one.StepMs),
			Milliseconds(one.OwnMs), Percent(one.InputStallRatio), memory})
	}
	return NewTable("Ranks: a step includes the wait for the others", "-ttnnnn",
		[]string{"rank", "machine", "device", "step", "own part", "input stall", "memory"}, rows...).folded()
}

func plugins(r *report.Report) *Table {
	if len(r.Plugins) == 0 {
		return nil
	}
	var rows [][]string
	for _, p := range r.Plugins[:min(len(r.Plugins), mostRows)] {
		rows = append(rows, []string{p.ID, Count(int64(p.Workers)), Count(p.Calls), Milliseconds(p.P50Ms),
			Milliseconds(p.P99Ms), Count(int64(p.Restarts)), Count(p.Failed), Count(p.Lost), Size(p.PeakMemoryBytes)})
	}
	return NewTable("Processes that prepare the batches", "-nnnnnnnn",
		[]string{"plugin", "workers", "calls", "p50", "p99", "restarts", "failed", "lost", "memory"}, rows...)
}

// data are the tables of the lists, and of characters without a token.
func data(r *report.Report) (list []Table) {
	d := &r.Data
	var rows [][]string
	add := func(name string, l *report.DataList) {
		rows = append(rows, []string{name, Count(int64(l.Clips)), length(l.Seconds), ""})
		for _, left := range l.LeftOut[:min(len(l.LeftOut), mostLines)] {
			text := left.Reason
			if left.File != "" {
				text += " (" + left.File + ")"
			}
			rows = append(rows, []string{name + ", left out", Count(int64(left.Clips)), length(left.Seconds), text})
		}
	}
	if d.Train.Clips > 0 || len(d.Train.LeftOut) > 0 {
		add("training", &d.Train)
		left := len(d.Train.LeftOut)
		if d.Validation != nil {
			add("validation", d.Validation)
			left += len(d.Validation.LeftOut)
		}
		head := []string{"list", "clips", "length", "reason"}
		if left == 0 {
			head = head[:3]
			for i := range rows {
				rows[i] = rows[i][:3]
			}
		}
		list = append(list, *NewTable("Clips", "-nnt", head, rows...))
		rows = [][]string{
			{"buckets", Count(int64(len(d.Buckets)))}, {"padding in rows with a clip", Percent(d.Padding.Share)},
			{"frames in empty rows", Percent(d.Padding.EmptyRows)},
		}
		if d.Shared > 0 {
			rows = append(rows, []string{"validation clips that are training clips", Count(int64(d.Shared))})
		}
		list = append(list, *NewTable("How batches are filled", "-n", []string{"what", "figure"}, rows...))
	}
	rows = nil
	for _, c := range r.UnknownCharacters[:min(len(r.UnknownCharacters), mostRows)] {
		rows = append(rows, []string{alone(c.Char), c.Code, Count(int64(c.Count)), c.Split, c.First, c.As})
	}
	if len(rows) > 0 {
		list = append(list, *NewTable("Characters that the tokenizer does not know", "--n---",
			[]string{"character", "code", "count", "list", "first in", "the model gets"}, rows...).folded())
	}
	return list
}

// alone is a character as it can be seen without another one: a mark gets a circle to be on.
func alone(char string) string {
	if first, _ := utf8.DecodeRuneInString(char); unicode.Is(unicode.M, first) {
		return "\u25cc" + char
	}
	return char
}

func length(seconds float64) string {
	if !usable(seconds) || seconds <= 0 {
		return "-"
	}
	return units.Length(seconds)
}

func quarantine(q *record.Quarantine) *Table {
	if q.Clips == 0 {
		return nil
	}
	var rows [][]string
	for _, r := range q.Reasons {
		rows = append(rows, []string{r.Reason, r.Stage, Count(int64(r.Clips)), strings.Join(r.First, ", ")})
	}
	if q.Others > 0 {
		rows = append(rows, []string{"other reasons", "", Count(int64(q.Others)), ""})
	}
	return NewTable(units.Count(q.Clips, "clip")+" in quarantine.jsonl", "t-nt",
		[]string{"reason", "found by", "clips", "first"}, rows...)
}

// settings are those that were chosen, and all.
func settings(run *record.Run) (list []Table) {
	var chosen, all [][]string
	for _, s := range run.Settings {
		row := []string{"--" + s.Name, s.Value, s.Origin}
		if s.Origin != "default" {
			chosen = append(chosen, row)
		}
		all = append(all, row)
	}
	head := []string{"setting", "value", "from"}
	if run.Report != nil && len(run.Report.Changes) > 0 {
		var rows [][]string
		for _, c := range run.Report.Changes {
			rows = append(rows, []string{"--" + c.Name, Count(c.Step), c.From, c.To})
		}
		list = append(list, *NewTable("Settings that were changed during the run", "-ntt",
			[]string{"setting", "after step", "from", "to"}, rows...))
	}
	if len(chosen) > 0 {
		list = append(list, *NewTable("Settings that are not the default", "-t-", head, chosen...))
	}
	if len(all) > 0 {
		t := NewTable("All settings", "-t-", head, all...)
		t.Closed = true
		list = append(list, *t)
	}
	return list
}

func versions(r *report.Report) (list []Table) {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		rows = append(rows, []string{name, r.Versions[name]})
	}
	if len(rows) > 0 {
		list = append(list, *NewTable("Software that computed the numbers", "--", []string{"name", "version"}, rows...))
	}
	rows = nil
	for _, g := range r.Graphs[:min(len(r.Graphs), mostRows)] {
		form := "as exported"
		if g.Fused != nil {
			form = "fused"
		}
		rows = append(rows, []string{g.File, g.Use, g.Precision, form, Count(int64(g.Nodes)), g.SHA256})
	}
	if len(rows) > 0 {
		list = append(list, *NewTable("Graphs", "----nh",
			[]string{"file", "use", "precision", "form", "nodes", "SHA-256"}, rows...))
	}
	return list
}

// probes are the tensors of the last evaluation that computed any.
type probes struct {
	Table      *Table
	Pictures   []probePicture
	Histograms []Figure
	Others     bool // there are more histograms than the page has
}

// mostHistograms bounds those of a page.
const mostHistograms = 12

// histogram draws how many values of a tensor are where between the smallest and the largest.
func histogram(p *record.Probe) Figure {
	low, high, n := *p.Min, *p.Max, float64(len(p.Counts))
	line := chart.Line{Color: 6}
	for i, count := range p.Counts {
		line.Points = append(line.Points, chart.Point{X: low + (high-low)*(float64(i)+0.5)/n, Y: count})
	}
	text := fmt.Sprintf("Values from %s to %s.", units.Number(low), units.Number(high))
	plot := chart.Plot{Title: p.Name, Describe: text, XName: "value", FromZero: true, Lines: []chart.Line{line}}
	return Figure{p.Name, text, plot.SVG()}
}

type probePicture struct {
	Name, Alt string
	Medium    *Medium
}

func probesOf(run *record.Run, media *Media, link string) *probes {
	if len(run.Probes.List) == 0 {
		return nil
	}
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return units.Number(*v)
	}
	p := &probes{}
	var rows [][]string
	for _, one := range run.Probes.List {
		rows = append(rows, []string{one.Name, strings.Trim(fmt.Sprint(one.Shape), "[]"), number(one.Mean),
			number(one.Std),
			number(one.Min), number(one.Max), number(one.Norm), Count(one.NotFinite)})
		if len(one.Counts) > 1 && one.Min != nil && one.Max != nil {
			if p.Others = len(p.Histograms) == mostHistograms; !p.Others {
				p.Histograms = append(p.Histograms, histogram(&one))
			}
		}
		if m := media.Take(run.Folder, one.Picture, link); m != nil {
			alt := fmt.Sprintf("%s: values from %s to %s, mean %s", one.Name, number(one.Min), number(one.Max),
				number(one.Mean))
			p.Pictures = append(p.Pictures, probePicture{one.Name, alt, m})
		}
	}
	caption := fmt.Sprintf("Tensors after step %s", Count(run.Probes.Step))
	if run.Probes.More > 0 {
		caption += fmt.Sprintf("; %d more are left out", run.Probes.More)
	}
	p.Table = NewTable(caption, "--nnnnnn", []string{"tensor", "shape", "mean", "std", "min", "max", "norm",
		"not finite"},
		rows...).folded()
	return p
}
