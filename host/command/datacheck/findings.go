package datacheck

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// Rules for findings (docs/data-check.md).
const (
	longSilence = 1.0 // seconds at one end
	oddFactor   = 2   // from the median, at least
	oddSpread   = 4   // robust standard deviations of the logarithm, at least
)

func characters(ix *dataset.Index) []Character {
	as := "unknown"
	if ix.ByteFallback {
		as = "bytes"
	}
	list := []Character{}
	for _, u := range ix.Unknown {
		list = append(list, Character{string(u.Char), fmt.Sprintf("U+%04X", u.Char), u.Count, u.Place, as})
	}
	slices.SortStableFunc(list, func(a, b Character) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// same returns the groups of rows with the same key, in the order of their first lines.
func same[K comparable](ix *dataset.Index, rows []int, key func(row int) K) [][]Line {
	first := map[K]int{} // row + 1, or minus the number of the group
	groups := [][]Line{}
	for _, i := range rows {
		k := key(i)
		at, ok := first[k]
		if !ok {
			first[k] = i + 1
			continue
		}
		if at > 0 {
			groups = append(groups, []Line{{ix.Rows[at-1].Line, ix.Rows[at-1].ID}})
			at = -len(groups)
			first[k] = at
		}
		groups[-at-1] = append(groups[-at-1], Line{ix.Rows[i].Line, ix.Rows[i].ID})
	}
	slices.SortFunc(groups, func(a, b []Line) int { return cmp.Compare(a[0].Line, b[0].Line) })
	return groups
}

// odd reports which values are far from the others: a factor of oddFactor from the median, and oddSpread robust
// standard deviations of the logarithm. A robust standard deviation is 1.4826 times the median of the distances from
// the median (Hampel, "The influence curve and its role in robust estimation", 1974).
func odd(values []float64) []bool {
	if len(values) == 0 {
		return nil
	}
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	center := median(logs)
	distances := make([]float64, len(logs))
	for i, l := range logs {
		distances[i] = math.Abs(l - center)
	}
	limit := max(math.Log(oddFactor), oddSpread*1.4826*median(distances))
	out := make([]bool, len(values))
	for i, d := range distances {
		out[i] = d > limit
	}
	return out
}
