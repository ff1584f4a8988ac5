package report

import (
	"math"

	"github.com/xtts-host/xtts-host/host/base/stat"
)

// Distribution describes the times of steps, in milliseconds.
type Distribution struct {
	Steps int64   `json:"steps"`
	Mean  float64 `json:"mean"`
	// Std is the standard deviation of these steps (over n, not n-1).
	Std float64 `json:"std"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// P50 and P99 are the smallest times that half and 99 % of the steps do not exceed, within 0.5 %.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// Variation is Std / Mean.
	Variation float64 `json:"variation"`
}

// The first cell of the histogram begins at histogramMin ms, and each cell is histogramGrowth times as long as the
// previous one. The cells reach beyond three hours. So quantiles need 18 KiB for a run of any length, and have an error
// of half a cell at most.
const (
	histogramMin    = 1e-3
	histogramGrowth = 1.01
	histogramCells  = 2320
)

// DistributionOf describes these times.
func DistributionOf(ms []float64) Distribution {
	var s sample
	for _, v := range ms {
		s.add(v)
	}
	return s.distribution()
}

// sample collects times and their quantiles. The zero value is empty.
type sample struct {
	stat.Moments
	min, max float64
	cells    [histogramCells]int64
}

// add counts one time in ms.
func (s *sample) add(ms float64) {
	if s.N == 0 {
		s.min, s.max = ms, ms
	}
	s.Add(ms)
	s.min, s.max = min(s.min, ms), max(s.max, ms)
	cell := 0
	if ms > histogramMin {
		cell = min(histogramCells-1, int(math.Log(ms/histogramMin)/math.Log(histogramGrowth)))
	}
	s.cells[cell]++
}

// join adds the times of another sample.
func (s *sample) join(o *sample) {
	if o.N == 0 {
		return // it has no min
	}
	if s.N == 0 {
		*s = *o
		return
	}
	s.Join(o.Moments)
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	for i, c := range o.cells {
		s.cells[i] += c
	}
}

func (s *sample) distribution() Distribution {
	if s.N == 0 {
		return Distribution{}
	}
	d := Distribution{
		Steps: s.N, Mean: s.Mean, Std: s.Std(), Min: s.min, Max: s.max, P50: s.quantile(0.5), P99: s.quantile(0.99),
	}
	if d.Mean > 0 {
		d.Variation = d.Std / d.Mean
	}
	return d
}

// quantile returns the time that a share q of the steps does not exceed: the middle of its cell.
func (s *sample) quantile(q float64) float64 {
	left := int64(math.Ceil(q * float64(s.N)))
	for i, n := range s.cells {
		if left -= n; left <= 0 {
			v := histogramMin * math.Pow(histogramGrowth, float64(i)+0.5)
			return min(max(v, s.min), s.max)
		}
	}
	return s.max
}
