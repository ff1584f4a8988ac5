package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/stat"
)

func TestDistributionOfFew(t *testing.T) {
	for _, c := range []struct {
		times []float64
		want  Distribution
	}{
		{nil, Distribution{}},
		{[]float64{0}, Distribution{Steps: 1}},
		{[]float64{100}, Distribution{Steps: 1, Mean: 100, Min: 100, Max: 100, P50: 100, P99: 100}},
		{[]float64{5, 5, 5}, Distribution{Steps: 3, Mean: 5, Min: 5, Max: 5, P50: 5, P99: 5}},
		{
			[]float64{2, 4, 4, 4, 5, 5, 7, 9},
			Distribution{Steps: 8, Mean: 5, Std: 2, Min: 2, Max: 9, P50: 4, P99: 9, Variation: 0.4},
		},
		// beyond the last cell
		{[]float64{1e9}, Distribution{Steps: 1, Mean: 1e9, Min: 1e9, Max: 1e9, P50: 1e9, P99: 1e9}},
	} {
		var s stat.Sample
		for _, v := range c.times {
			s.Add(v)
		}
		got := distribution(&s)
		for i, pair := range [][2]float64{
			{float64(got.Steps), float64(c.want.Steps)}, {got.Mean, c.want.Mean}, {got.Std, c.want.Std},
			{got.Min, c.want.Min}, {got.Max, c.want.Max}, {got.P50, c.want.P50}, {got.P99, c.want.P99},
			{got.Variation, c.want.Variation},
		} {
			if math.Abs(pair[0]-pair[1]) > 0.005*pair[1] {
				t.Errorf("%v: figure %d is %v, want %v", c.times, i, pair[0], pair[1])
			}
		}
	}
}

// Quantiles are within half a cell of the sorted list's.
func TestQuantilesOfMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s, joined stat.Sample
	parts := make([]stat.Sample, 3)
	var all []float64
	for range 20000 {
		v := math.Exp(4 + rng.NormFloat64()) // some 55 ms, with a long tail
		s.Add(v)
		parts[rng.IntN(len(parts))].Add(v)
		all = append(all, v)
	}
	slices.Sort(all)
	d := distribution(&s)
	for i := range parts {
		joined.Join(&parts[i])
	}
	joined.Join(new(stat.Sample)) // which has no least time
	j := distribution(&joined)
	if math.Abs(j.Mean-d.Mean) > 1e-9*d.Mean || math.Abs(j.Std-d.Std) > 1e-9*d.Std {
		t.Errorf("joined %+v, want %+v", j, d)
	}
	if j.Mean, j.Std, j.Variation = d.Mean, d.Std, d.Variation; j != d {
		t.Errorf("joined %+v, want %+v", j, d)
	}
	for _, c := range []struct{ got, q float64 }{{d.P50, 0.5}, {d.P99, 0.99}} {
		want := all[int(math.Ceil(c.q*float64(len(all))))-1]
		if math.Abs(c.got-want) > 0.005*want {
			t.Errorf("quantile %v is %v, want %v within 0.5 %%", c.q, c.got, want)
		}
	}
}
