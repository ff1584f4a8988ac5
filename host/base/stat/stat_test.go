package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMoments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all Moments
	parts := make([]Moments, 4) // the last stays empty
	var numbers []float64
	for range 1000 {
		v := 1e6 + random.NormFloat64() // far from 0, where sums of squares would cancel
		numbers = append(numbers, v)
		all.Add(v)
		parts[random.IntN(3)].Add(v)
	}
	mean, squares := 0.0, 0.0
	for _, v := range numbers {
		mean += v / 1000
	}
	for _, v := range numbers {
		squares += (v - mean) * (v - mean)
	}
	var joined Moments
	for _, p := range parts {
		joined.Join(p)
	}
	for name, m := range map[string]Moments{"added": all, "joined": joined} {
		std := math.Sqrt(squares / 1000)
		if m.N != 1000 || math.Abs(m.Mean-mean) > 1e-8 || math.Abs(m.Std()-std) > 1e-8 {
			t.Errorf("%s: %+v with a deviation of %v, want a mean of %v and %v", name, m, m.Std(), mean, std)
		}
	}
	if none := (Moments{}).Std(); none != 0 {
		t.Errorf("the deviation of nothing is %v", none)
	}
}
