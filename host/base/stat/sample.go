package stat

import "math"

// The first cell of the histogram begins at histogramMin, and each cell is histogramGrowth times as long as the
// previous one. In milliseconds, the cells reach beyond three hours. So quantiles need 18 KiB for any number of values,
// and have an error of half a cell at most.
const (
	histogramMin    = 1e-3
	histogramGrowth = 1.01
	histogramCells  = 2320
)

// Sample collects numbers of 0 and more, such as times in milliseconds, with their quantiles. The zero value is empty.
type Sample struct {
	Moments
	Min, Max float64 // 0 without numbers
	cells    [histogramCells]int64
}

// Add counts a number.
func (s *Sample) Add(v float64) {
	if s.N == 0 {
		s.Min, s.Max = v, v
	}
	s.Moments.Add(v)
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
	cell := 0
	if v > histogramMin {
		cell = min(histogramCells-1, int(math.Log(v/histogramMin)/math.Log(histogramGrowth)))
	}
	s.cells[cell]++
}

// Join adds the numbers of another sample.
func (s *Sample) Join(o *Sample) {
	if o.N == 0 {
		return // it has no Min
	}
	if s.N == 0 {
		*s = *o
		return
	}
	s.Moments.Join(o.Moments)
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	for i, c := range o.cells {
		s.cells[i] += c
	}
}

// Quantile returns the number that a share q of all does not exceed, within 0.5 %: the middle of its cell. It is 0
// without numbers.
func (s *Sample) Quantile(q float64) float64 {
	left := int64(math.Ceil(q * float64(s.N)))
	for i, n := range s.cells {
		if left -= n; left <= 0 {
			v := histogramMin * math.Pow(histogramGrowth, float64(i)+0.5)
			return min(max(v, s.Min), s.Max)
		}
	}
	return s.Max
}
