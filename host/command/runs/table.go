package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// headOf is the head of the table, with "by" if the best evaluation of a run is not that of the lowest loss. The name
// is the last column: it may have any length.
func headOf(by bool) []string {
	list := []string{"written", "state", "steps", "loss", "best", "steps/s", "wall", "size", "run"}
	if by {
		list = slices.Insert(list, 5, "by")
	}
	return list
}

// roomy is the width of a terminal from which on columns are two spaces apart, and a date has its time.
const roomy = 100

// In a terminal, a name has room for so many columns, unless all of spare are left out. --json has all.
const leastName = 16

var spare = []string{"steps/s", "size", "wall"}

// table writes a line for each run. In a terminal, a name that does not fit loses its beginning.
func table(list *Listing, width int) string {
	wide := width == 0 || width >= roomy
	by := slices.ContainsFunc(list.Runs, func(r Row) bool { return r.Best != nil && r.Best.By != "" })
	head := headOf(by)
	cells := [][]string{head}
	for _, r := range list.Runs {
		cells = append(cells, cellsOf(r, wide, by))
	}
	gap := " "
	if wide {
		gap = "  "
	}
	widths, used := widthsOf(cells, len(gap))
	for _, name := range spare {
		if width == 0 || width-used >= leastName {
			break
		}
		i := slices.Index(cells[0], name)
		for n, row := range cells {
			cells[n] = slices.Delete(row, i, i+1)
		}
		widths, used = widthsOf(cells, len(gap))
	}
	last := len(widths)
	var b strings.Builder
	for _, row := range cells {
		line := ""
		for i := range last {
			if i < 2 { // words to the left, numbers to the right
				line += fold.Pad(row[i], widths[i]) + gap
			} else {
				line += fold.PadLeft(row[i], widths[i]) + gap
			}
		}
		name := row[last]
		if width > 0 {
			name = fold.CutStart(name, max(8, width-used))
		}
		b.WriteString(line + name + "\n")
	}
	for _, r := range list.Runs {
		for _, problem := range r.Problems {
			fmt.Fprintf(&b, "read in part: %s: %s\n", visible.Text(r.Folder), visible.Text(problem))
		}
	}
	for _, u := range list.Unreadable {
		fmt.Fprintf(&b, "cannot be read: %s: %s\n", visible.Text(u.Folder), visible.Text(u.Reason))
	}
	return b.String()
}

// widthsOf are the widths of all columns but the last, and used is what they and the gaps after them take.
func widthsOf(cells [][]string, gap int) (widths []int, used int) {
	widths = make([]int, len(cells[0])-1)
	for _, row := range cells {
		for i := range widths {
			widths[i] = max(widths[i], fold.Width(row[i]))
		}
	}
	for _, w := range widths {
		used += w + gap
	}
	return widths, used
}

func cellsOf(r Row, wide, by bool) []string {
	date, state := r.Written.Local().Format("2006-01-02 15:04"), r.Outcome
	if !wide {
		date = date[:len("2006-01-02")]
	}
	loss := units.Number(float64(r.LossFirst)) + "→" + units.Number(float64(r.LossLast))
	best, measure, wall := "-", "-", "-"
	if r.Best != nil {
		best, measure = units.Number(float64(r.Best.Loss)), cmp.Or(visible.Text(r.Best.By), report.ByLoss)
		if !wide {
			measure = strings.TrimPrefix(measure, report.BySpoken)
		}
		if r.Best.Value != nil {
			best = units.Number(float64(*r.Best.Value))
		}
	}
	if r.WallS > 0 {
		wall = short(r.WallS)
	}
	size := sizeOf(r.Bytes)
	if r.Partly {
		size = ">" + size
	}
	line := []string{
		date, state, count(r.Steps), loss, best, units.Rate(r.StepsPerSecond), wall, size, visible.Text(r.Folder),
	}
	if by {
		line = slices.Insert(line, 5, measure)
	}
	return line
}

// count writes a number of steps in at most six characters.
func count(n int64) string {
	switch {
	case n < 100_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.3gM", float64(n)/1e6)
}

// short writes a time without spaces: 45s, 12m05s, 3h07m, 12d04h.
func short(seconds float64) string {
	const longest = 10_000 * 24 * 3600
	d := time.Duration(min(seconds, longest) * float64(time.Second)).Round(time.Second)
	s := int64(d / time.Second)
	switch {
	case s < 1:
		return "<1s"
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/(24*3600), s%(24*3600)/3600)
}

// sizeOf writes a number of bytes in at most five characters.
func sizeOf(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"K", "M", "G", "T"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, next
	}
	if v < 9.95 && unit != "B" {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", v, unit)
}
