package compare

import (
	"math"

	"github.com/xtts-host/xtts-host/host/observe/record"
)

const (
	mostBlocks  = 64 // of a run
	leastBlocks = 10
	// leastSteps is the number of steps below which a run has no interval.
	leastSteps = 2 * leastBlocks
	normal975  = 1.959963984540054 // the quantile of the normal distribution
)

// rate is a speed, per millisecond, with the variance of its logarithm.
type rate struct {
	value    float64
	variance float64
	freedom  float64 // degrees of freedom of the variance; 0 for a run that is too short
}

// rateOf estimates how much of a count a run does in a millisecond. Steps that follow each other have similar times, so
// their variance says too little. Instead, the run is cut into blocks of equal numbers of steps: so long that their
// means are not correlated, or ten at the least. What correlation is left makes the variance larger.
func rateOf(pieces []record.Piece, count func(p *record.Piece) float64) rate {
	var counts, times []float64
	sum, time, steps := 0.0, 0.0, 0.0
	for i := range pieces {
		if p := &pieces[i]; p.Timed > 0 {
			counts, times = append(counts, count(p)), append(times, p.TimedMs)
			sum, time, steps = sum+count(p), time+p.TimedMs, steps+p.Timed
		}
	}
	if !(sum > 0) || !(time > 0) || math.IsInf(sum, 0) || math.IsInf(time, 0) {
		return rate{}
	}
	r := rate{value: sum / time}
	n := len(counts)
	if n < leastSteps {
		return r
	}
	// To the first order, the logarithm of the ratio of two means differs from its value by the mean of these.
	deviations := make([]float64, n)
	for i := range counts {
		deviations[i] = float64(n) * (counts[i]/sum - times[i]/time)
	}
	r.variance, r.freedom = varianceOfMean(deviations)
	return r
}

// varianceOfMean is the variance of the mean of correlated values, and its degrees of freedom.
func varianceOfMean(values []float64) (variance, freedom float64) {
	for blocks := min(mostBlocks, len(values)/2); ; blocks = max(leastBlocks, blocks/2) {
		means := blockMeans(values, blocks)
		v, r := momentsOf(means)
		b := float64(blocks)
		if blocks > leastBlocks && r > normal975/math.Sqrt(b) {
			continue // longer blocks
		}
		// An estimated correlation is too small by 1/b or so, of values without one, and by more of others.
		r = min(max(0, (r*b+1)/(b-4)), 0.8)
		return v / b * (1 + r) / (1 - r), b - 1
	}
}

// blockMeans are the means of blocks of equal length. The values that are left over are the first ones, in which a run
// warms up.
func blockMeans(values []float64, blocks int) []float64 {
	size := len(values) / blocks
	values = values[len(values)-blocks*size:]
	means := make([]float64, blocks)
	for i := range means {
		for _, v := range values[i*size : (i+1)*size] {
			means[i] += v / float64(size)
		}
	}
	return means
}

// momentsOf are the variance (over n-1) of values, and their correlation with the next ones.
func momentsOf(values []float64) (variance, correlation float64) {
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	squares, products := 0.0, 0.0
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (values[i-1] - mean)
		}
	}
	if squares == 0 {
		return 0, 0
	}
	return squares / float64(len(values)-1), products / squares
}

// Interval is a figure with the ends of its 95 % confidence interval, which are absent for a run that is too short.
type Interval struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// interval is the rate times a factor.
func (r rate) interval(factor float64) Interval {
	return between(factor*r.value, r.variance, r.freedom)
}

// over is the ratio of two rates.
func (r rate) over(base rate) *Interval {
	if !(r.value > 0) || !(base.value > 0) {
		return nil
	}
	variance, freedom := r.variance+base.variance, 0.0
	switch {
	case r.freedom == 0 || base.freedom == 0:
	case variance == 0:
		freedom = r.freedom
	default: // B. L. Welch, Biometrika 34 (1947), 28
		freedom = variance * variance / (r.variance*r.variance/r.freedom + base.variance*base.variance/base.freedom)
	}
	i := between(r.value/base.value, variance, freedom)
	return &i
}

func between(value, variance, freedom float64) Interval {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return Interval{}
	}
	i := Interval{Value: value}
	if freedom > 0 && !math.IsNaN(variance) && !math.IsInf(variance, 0) {
		by := math.Exp(student(freedom) * math.Sqrt(variance))
		low, high := value/by, value*by
		if !math.IsInf(high, 0) {
			i.Low, i.High = &low, &high
		}
	}
	return i
}

// student is the quantile 0.975 of Student's distribution, by the expansion of Cornish and Fisher: within 0.2 % from
// nine degrees of freedom on.
func student(freedom float64) float64 {
	z := normal975
	z3, z5, z7 := z*z*z, math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom) +
		(3*z7+19*z5+17*z3-15*z)/(384*freedom*freedom*freedom)
}
