package datacheck

import (
	"math"
	"slices"
)

// Distribution describes the values of all usable clips.
type Distribution struct {
	Min       float64   `json:"min"`
	Mean      float64   `json:"mean"`
	Median    float64   `json:"median"`
	Max       float64   `json:"max"`
	Histogram Histogram `json:"histogram"`
}

// Histogram counts values in bins of equal width. Bin i has the values from Start + i·Width to the next bin.
type Histogram struct {
	Start  float64 `json:"start"`
	Width  float64 `json:"width"`
	Counts []int   `json:"counts"`
}

// mostBins are enough for a picture that can be read.
const mostBins = 24

func newDistribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{Histogram: Histogram{Counts: []int{}}}
	}
	d := Distribution{Min: slices.Min(values), Max: slices.Max(values), Median: median(values)}
	for _, v := range values {
		d.Mean += v
	}
	d.Mean /= float64(len(values))
	h := &d.Histogram
	h.Width = width(d.Max - d.Min)
	first := math.Floor(d.Min / h.Width)
	h.Start = first * h.Width
	h.Counts = make([]int, int(math.Floor(d.Max/h.Width)-first)+1)
	for _, v := range values {
		h.Counts[int(math.Floor(v/h.Width)-first)]++
	}
	return d
}

// width returns the smallest of 1, 2 and 5 times a power of ten that makes at most mostBins bins of a range.
func width(length float64) float64 {
	const least = 0.01
	for w := least; ; w *= 10 {
		for _, f := range []float64{1, 2, 5} {
			if length/(f*w)+1 < mostBins {
				return f * w
			}
		}
	}
}

// median does not change the values. Of an even number of values it is the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
