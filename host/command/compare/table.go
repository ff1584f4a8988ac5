package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// row is a figure of each run.
type row struct {
	Name  string // indented below what it is about
	Whole string // the name by itself: "steps/min, speed-up"
	Cells []string
}

const (
	labels   = 24 // columns of the names of figures
	cells    = 14 // of a figure
	leastRow = 2  // runs beside each other, however narrow a terminal is
)

// rows are the figures of the runs, as the table and the page show them.
func (r *Result) rows() []row {
	t := &rowsOf{Result: r}
	add := t.add
	add("state", func(r *Entry) string { return r.Outcome })
	add("batch", (*Entry).batch)
	if otherRanks(r.Runs) {
		add("ranks", (*Entry).ranks)
	}
	add("steps", func(r *Entry) string { return page.Count(r.Steps) })
	add("steps/min", func(r *Entry) string { return page.Rate(r.StepsPerMinute.Value) })
	add("  95 %", func(r *Entry) string { return ends(&r.StepsPerMinute, page.Rate) })
	add("  speed-up", func(r *Entry) string { return speedUpText(r.SpeedUp) })
	add("    95 %", func(r *Entry) string { return ends(r.SpeedUp, ratio) })
	add("frames/s", func(r *Entry) string { return page.Rate(r.FramesPerSecond.Value) })
	add("  95 %", func(r *Entry) string { return ends(&r.FramesPerSecond, page.Rate) })
	add("  speed-up", func(r *Entry) string { return speedUpText(r.SpeedUpFrames) })
	add("    95 %", func(r *Entry) string { return ends(r.SpeedUpFrames, ratio) })
	add("step time", func(r *Entry) string { return page.Milliseconds(r.StepMs.Mean) })
	add("  variation", func(r *Entry) string { return page.Percent(r.StepMs.Variation) })
	add("  within a bucket", func(r *Entry) string {
		if r.StepMs.WithinBucket == 0 {
			return "-"
		}
		return page.Percent(r.StepMs.WithinBucket)
	})
	add("input stall", func(r *Entry) string { return page.Percent(r.InputStall) })
	for _, d := range r.devices() {
		add("busy: "+d, func(r *Entry) string { return busy(r, d) })
	}
	for _, d := range r.devices() {
		add("memory: "+d, func(r *Entry) string { return peak(r, d) })
		add("  limit", func(r *Entry) string { return limit(r, d) })
	}
	add("wall time", func(r *Entry) string {
		if r.WallS == 0 {
			return "-"
		}
		return page.Duration(r.WallS)
	})
	t.losses()
	t.speech()
	return t.list
}

// losses adds the rows of losses.
func (t *rowsOf) losses() {
	r, add := t.Result, t.add
	loss := func(v report.Float) string { return units.Number(float64(v)) }
	add("first loss", func(r *Entry) string { return loss(r.LossFirst) })
	add("loss, mean of 20", func(r *Entry) string { return loss(r.AtEnd.Training) })
	if r.EqualStep > 0 {
		add("  at step "+page.Count(r.EqualStep), func(r *Entry) string { return loss(r.AtStep.Training) })
	}
	if r.EqualTimeS > 0 {
		add("  after "+page.Duration(r.EqualTimeS), func(r *Entry) string { return loss(r.AtTime.Training) })
		add("    at step", func(r *Entry) string { return page.Count(r.AtTime.Step) })
	}
	evaluated := func(e Entry) bool { return e.AtEnd.ValidationStep > 0 }
	addBest := add
	if slices.ContainsFunc(r.Runs, evaluated) {
		addBest = t.put // the rows below need the name, also if no evaluation is the best
	}
	addBest("best evaluation", func(r *Entry) string {
		if r.Best == nil {
			return "-"
		}
		return loss(r.Best.Loss)
	})
	for i := range r.Runs {
		b := r.Runs[i].Best
		if b == nil || b.By == "" || slices.ContainsFunc(r.Runs[:i], func(e Entry) bool { return e.by() == b.By }) {
			continue
		}
		add("  by "+strings.TrimPrefix(b.By, report.BySpoken), func(r *Entry) string {
			if r.by() != b.By || r.Best.Value == nil {
				return "-"
			}
			return loss(*r.Best.Value)
		})
	}
	if r.Evaluated > 0 {
		add("  at step "+page.Count(r.Evaluated), func(r *Entry) string { return loss(r.Evaluation) })
	}
	if r.EqualTimeS > 0 {
		add("  after "+page.Duration(r.EqualTimeS), func(r *Entry) string { return loss(r.AtTime.Validation) })
	}
}

// by is what the best evaluation is the best by, "" for the loss.
func (r *Entry) by() string {
	if r.Best == nil {
		return ""
	}
	return r.Best.By
}

// rowsOf collects the rows of a result.
type rowsOf struct {
	*Result
	list  []row
	above []string // the names that the next one may belong to
}

// add adds a figure, unless no run has it.
func (t *rowsOf) add(name string, of func(run *Entry) string) {
	has := func(run Entry) bool {
		text := of(&run)
		return text != "-" && text != ""
	}
	if slices.ContainsFunc(t.Runs, has) {
		t.put(name, of)
	}
}

// put adds a figure, also if no run has it.
func (t *rowsOf) put(name string, of func(run *Entry) string) {
	one := row{Name: name}
	for i := range t.Runs {
		one.Cells = append(one.Cells, of(&t.Runs[i]))
	}
	text := strings.TrimLeft(name, " ")
	t.above = append(t.above[:min(len(t.above), (len(name)-len(text))/2)], text)
	one.Whole = strings.Join(t.above, ", ")
	t.list = append(t.list, one)
}

// ends are the ends of an interval.
func ends(i *Interval, text func(float64) string) string {
	if i == nil || i.Low == nil {
		return "-"
	}
	return text(*i.Low) + "-" + text(*i.High)
}

func ratio(v float64) string {
	if math.IsNaN(v) || v >= 1e5 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func speedUpText(i *Interval) string {
	if i == nil {
		return "-"
	}
	return ratio(i.Value)
}

// devices are those of the runs with their roles, each once.
func (r *Result) devices() (list []string) {
	seen := map[string]bool{}
	add := func(device, role string) {
		if name := nameOf(device, role); !seen[name] && len(list) < 16 {
			seen[name] = true
			list = append(list, name)
		}
	}
	for i := range r.Runs {
		for _, m := range r.Runs[i].Memory {
			add(m.Device, m.Role)
		}
		for _, u := range r.Runs[i].Utilization {
			add(u.Device, u.Role)
		}
	}
	return list
}

// nameOf is a role, with the device where it is no GPU: GPUs of two machines have other names.
func nameOf(device, role string) string {
	if device == "cpu" {
		return "cpu"
	}
	return role + " GPU"
}

func busy(r *Entry, device string) string {
	for _, u := range r.Utilization {
		if nameOf(u.Device, u.Role) == device {
			return page.Percent(u.Mean)
		}
	}
	return "-"
}

func peak(r *Entry, device string) string {
	for _, m := range r.Memory {
		if n := peakOf(&m); nameOf(m.Device, m.Role) == device && n > 0 {
			return page.Size(n)
		}
	}
	return "-"
}

// peakOf is the larger of the peaks of a device; 0 if none is known.
func peakOf(m *report.Memory) int64 { return max(m.ProcessPeakBytes, m.ArenaPeakBytes) }

func limit(r *Entry, device string) string {
	for _, m := range r.Memory {
		if nameOf(m.Device, m.Role) == device && m.LimitBytes > 0 {
			return page.Size(m.LimitBytes)
		}
	}
	return "-"
}

// Text is the comparison for a terminal of a width.
func (r *Result) Text(width int) string {
	var b strings.Builder
	for i, run := range r.Runs {
		base := ""
		if i == 0 {
			base = "  (baseline)"
		}
		fmt.Fprintf(&b, "%-3s %s%s\n", run.Letter, visible.Text(run.Folder), base)
	}
	var heads []string
	for _, run := range r.Runs {
		heads = append(heads, run.Letter)
	}
	r.blocks(&b, width, heads, r.rows())
	if s := r.Sweep; s != nil {
		b.WriteString("\n" + s.text(r))
	}
	var list []row
	for _, d := range r.Differences {
		list = append(list, row{Name: "--" + d.Name, Cells: d.Values})
	}
	if len(list) > 0 {
		b.WriteString("\nSettings that differ\n")
		r.blocks(&b, width, heads, list)
	}
	b.WriteString("\n" + fold.Text(r.verdict(), width) + "\n")
	for _, m := range r.Remarks {
		b.WriteString(fold.Text("- "+visible.Text(m.What)+affects(m), width) + "\n")
	}
	b.WriteString("\n" + fold.Text("Intervals: "+r.Method, width) + "\n")
	return b.String()
}

func affects(m Remark) string {
	if len(m.Affects) == 0 {
		return ""
	}
	return " (" + strings.Join(m.Affects, ", ") + ")"
}

// verdict says whether the runs are comparable.
func (r *Result) verdict() string {
	var are, not []string
	add := func(what string, comparable bool) {
		if comparable {
			are = append(are, what)
		} else {
			not = append(not, what)
		}
	}
	add("speeds", r.ComparableSpeed)
	add("losses", r.ComparableLosses)
	same := "bundle, device, precision, data and rows of a step"
	if r.spoke() {
		add("measures of speech", r.ComparableSpeech)
		same = "bundle, device, precision, data, rows of a step and spoken texts"
	}
	switch {
	case len(not) == 0:
		return "The runs are comparable: " + same + " are the same."
	case len(are) == 0:
		return "The runs are not comparable in all figures:"
	}
	first := strings.Join(are, " and ")
	return fmt.Sprintf("%s are comparable, %s are not, or only in part:", strings.ToUpper(first[:1])+first[1:],
		strings.Join(not, " and "))
}

// blocks writes as many runs beside each other as fit, with the baseline first in each block.
func (r *Result) blocks(b *strings.Builder, width int, heads []string, rows []row) {
	beside := max(leastRow, (width-labels)/cells)
	for from := 1; from == 1 || from < len(heads); from += beside - 1 {
		to := min(len(heads), from+beside-1)
		line := func(name string, all []string) {
			text := fold.Pad(fold.Cut(visible.Text(name), labels-1), labels-1)
			for _, cell := range append([]string{all[0]}, all[from:to]...) {
				text += fold.PadLeft(fold.Cut(visible.Text(cell), cells-1), cells)
			}
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		b.WriteString("\n")
		line("", heads)
		for _, row := range rows {
			line(row.Name, row.Cells)
		}
	}
}

// text is a sweep as a table: one run on each line.
func (s *Sweep) text(r *Result) string {
	var b strings.Builder
	b.WriteString(s.title(r) + "\n\n")
	for _, line := range s.table(r) {
		for i, cell := range line {
			if i == 0 {
				b.WriteString(fold.Pad(fold.Cut(visible.Text(cell), 17), 18))
				continue
			}
			columns := 11
			if i == 1 {
				columns = 4 // a letter
			}
			b.WriteString(fold.PadLeft(fold.Cut(visible.Text(cell), columns-1), columns))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// title says that the runs differ in one setting, which may not be all: their lengths do not count.
func (s *Sweep) title(r *Result) string {
	text := "The runs differ in exactly one setting: --" + s.Setting
	if slices.ContainsFunc(r.Differences, func(d Difference) bool { return slices.Contains(ofItsLength, d.Name) }) {
		text = "Apart from their lengths, the runs differ in exactly one setting: --" + s.Setting
	}
	return text
}

// table has a line for each run, after that of the heads.
func (s *Sweep) table(r *Result) [][]string {
	head := []string{s.Setting, "run", "steps/min", "frames/s"}
	if s.Ideal {
		head = append(head, "of ideal")
	}
	list := [][]string{append(head, "memory", "state")}
	for _, p := range s.Points {
		run := &r.Runs[p.Run]
		line := []string{p.Value, run.Letter, page.Rate(run.StepsPerMinute.Value), page.Rate(run.FramesPerSecond.Value)}
		if s.Ideal {
			text := "-"
			if p.Efficiency != nil {
				text = page.Percent(*p.Efficiency)
			}
			line = append(line, text)
		}
		memory := "-"
		for _, m := range run.Memory {
			if n := peakOf(&m); n > 0 && (m.Role == "model" || memory == "-") {
				memory = page.Size(n)
			}
		}
		list = append(list, append(line, memory, run.Outcome))
	}
	return list
}
