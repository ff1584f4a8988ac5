package chart

import (
	"cmp"
	"math"
	"slices"
)

// The room for the names at the ends of lines.
const (
	endRoom   = 24.0
	endApart  = 16.0 // two names that are less apart would overlap
	endLength = 2    // columns of a name
)

// end is the name of a line where that ends.
type end struct {
	x, y float64
	line *Line
}

func (e *end) overlaps(o *end) bool { return math.Abs(e.x-o.x) < endRoom }

// ends writes the names of lines where these end, apart from each other. Those that have no room are in the legend
// only.
func (p *Plot) ends(d *drawing, x, y axis) {
	var all []end
	for i := range p.Lines {
		l := &p.Lines[i]
		for _, at := range slices.Backward(l.Points) {
			if l.shown(at, y) {
				if l.Name != "" && !l.Alone {
					all = append(all, end{x.at(at.X) + 6, y.at(at.Y) + 5, l})
				}
				break
			}
		}
	}
	for _, e := range apart(thin(all)) {
		d.say(`<text class="c%d" x="%s" y="%s">%s</text>`, e.line.Color, place(e.x), place(e.y),
			text(fit(e.line.Name, endLength*letter)))
	}
}

// thin returns as many names of each column as have room above each other, from top to bottom. Of the two that are
// nearest to each other, the lower one goes: a reader could tell their lines apart least.
func thin(all []end) (kept []end) {
	byHeight := func(a, b end) int { return cmp.Compare(a.y, b.y) }
	room := 1 + int(math.Floor((bottom-top)/endApart))
	slices.SortStableFunc(all, func(a, b end) int { return cmp.Compare(a.x, b.x) })
	for n := 0; len(all) > 0; all = all[n:] {
		for n = 1; n < len(all) && all[n].overlaps(&all[n-1]); n++ {
		}
		column := slices.Clone(all[:n])
		slices.SortStableFunc(column, byHeight)
		for len(column) > room {
			nearest := 1
			for i := 2; i < len(column); i++ {
				if column[i].y-column[i-1].y <= column[nearest].y-column[nearest-1].y {
					nearest = i
				}
			}
			column = slices.Delete(column, nearest, nearest+1)
		}
		kept = append(kept, column...)
	}
	slices.SortStableFunc(kept, byHeight)
	return kept
}

// apart moves names, which come from top to bottom, so that none overlaps another one or the axis.
func apart(all []end) []end {
	for i := range all {
		for j := range all[:i] {
			if above := &all[j]; all[i].overlaps(above) {
				all[i].y = max(all[i].y, above.y+endApart)
			}
		}
	}
	for i := len(all) - 1; i >= 0; i-- { // those that were moved below the axis move up again
		all[i].y = min(all[i].y, bottom)
		for j := i + 1; j < len(all); j++ {
			if below := &all[j]; all[i].overlaps(below) {
				all[i].y = min(all[i].y, below.y-endApart)
			}
		}
	}
	return all
}
