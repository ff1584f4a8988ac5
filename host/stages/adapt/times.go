package adapt

import (
	"fmt"
	"math"
)

// Times describes times in seconds, in their order.
type Times struct {
	N         int
	Mean, Var float64
	// Runs is Var, or more if times in a row are alike: the largest k Var(M_k), where M_k is the mean of k times in a
	// row, for k of 1, 2, 4, 8 and 16, as far as there are 8 such means. Divided by the square of Mean, it is the index
	// of dispersion (Sriram and Whitt, Characterizing superposition arrival processes in packet multiplexers, IEEE
	// Journal on Selected Areas in Communications 4, 1986).
	Runs float64
}

// TimesOf describes times.
func TimesOf(seconds []float64) Times {
	t := Times{N: len(seconds)}
	t.Mean, t.Var = moments(seconds)
	t.Runs = t.Var
	means := seconds
	for k := 2; k <= 16 && len(means) >= 16; k *= 2 {
		pairs := make([]float64, len(means)/2)
		for i := range pairs {
			pairs[i] = (means[2*i] + means[2*i+1]) / 2
		}
		means = pairs
		_, v := moments(means)
		t.Runs = max(t.Runs, float64(k)*v)
	}
	return t
}

func moments(x []float64) (mean, variance float64) {
	for i, v := range x {
		d := v - mean
		mean += d / float64(i+1)
		variance += d * (v - mean)
	}
	return mean, variance / float64(max(1, len(x)))
}

// String returns the mean and the standard deviation: "31.2 ± 4.0 ms".
func (t Times) String() string {
	return fmt.Sprintf("%.1f ± %.1f ms", 1000*t.Mean, 1000*math.Sqrt(t.Var))
}

// rate is the number of events per second, and spread the variance of that number: if times between events are
// independent, a long time t has t / Mean events, with the variance t Var / Mean^3 (Cox, Renewal Theory, 1962).
func (t Times) rate() float64   { return 1 / t.Mean }
func (t Times) spread() float64 { return t.Runs / (t.Mean * t.Mean * t.Mean) }
