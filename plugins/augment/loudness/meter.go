package loudness

import (
	"math"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
)

// The gates of BS.1770-4.
const (
	absolute = -70 // LUFS
	relative = -10 // LU
)

// meter measures the loudness of mono samples at one rate.
type meter struct {
	shelf, highpass biquad.Filter
	rate            int
}

// newMeter designs the two filters of the K-weighting for a rate in Hz. BS.1770-4 has coefficients for 48 kHz only. The
// parameters of the analogue filters that lead to these by the bilinear transform are those of G. De Man, "Evaluation
// of Implementations of the EBU R128 Loudness Measurement", AES 145 (2018), which libebur128 and pyloudnorm use.
func newMeter(rate int) meter {
	m := meter{rate: rate}
	k := math.Tan(math.Pi * 1681.974450955533 / float64(rate))
	const q = 0.7071752369554196
	high := math.Pow(10, 3.999843853973347/20)
	band := math.Pow(high, 0.4996667741545416)
	a0 := 1 + k/q + k*k
	m.shelf = biquad.Filter{
		B0: (high + band*k/q + k*k) / a0, B1: 2 * (k*k - high) / a0, B2: (high - band*k/q + k*k) / a0,
		A1: 2 * (k*k - 1) / a0, A2: (1 - k/q + k*k) / a0,
	}
	k = math.Tan(math.Pi * 38.13547087602444 / float64(rate))
	const q2 = 0.5003270373238773
	a0 = 1 + k/q2 + k*k
	m.highpass = biquad.Filter{B0: 1, B1: -2, B2: 1, A1: 2 * (k*k - 1) / a0, A2: (1 - k/q2 + k*k) / a0}
	return m
}

// at is the first sample of a step of 100 ms.
func (m meter) at(step int) int { return (step*m.rate + 5) / 10 }

// steps is the number of whole steps of 100 ms that n samples have.
func (m meter) steps(n int) int {
	steps := 10 * n / m.rate
	if m.at(steps+1) <= n {
		steps++
	}
	for m.at(steps) > n {
		steps--
	}
	return steps
}

// integrated returns the loudness of samples in LUFS, or minus infinity for samples without any. powers is scratch
// memory of one value for each step.
func (m meter) integrated(samples []float32, powers []float64) float64 {
	weighting := biquad.Pair{First: m.shelf, Second: m.highpass}
	blocks := len(powers) - 3
	if blocks < 1 {
		power := weighting.Power(samples) / float64(len(samples))
		return m.gated(1, absolute, func(int) float64 { return power })
	}
	for i := range powers {
		powers[i] = weighting.Power(samples[m.at(i):m.at(i+1)])
	}
	block := func(i int) float64 {
		return (powers[i] + powers[i+1] + powers[i+2] + powers[i+3]) / float64(m.at(i+4)-m.at(i))
	}
	loud := m.gated(blocks, absolute, block)
	return m.gated(blocks, max(absolute, loud+relative), block)
}

// gated is the loudness of the mean power of all blocks above a gate in LUFS.
func (m meter) gated(blocks int, gate float64, power func(i int) float64) float64 {
	sum, count := 0.0, 0
	for i := range blocks {
		if p := power(i); lufs(p) > gate {
			sum += p
			count++
		}
	}
	return lufs(sum / float64(max(count, 1)))
}

// lufs is the loudness of a mean square after the K-weighting.
func lufs(power float64) float64 { return -0.691 + 10*math.Log10(power) }
