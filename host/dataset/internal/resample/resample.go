// Package resample converts sample rates with a Kaiser-windowed sinc in polyphase form, for any ratio of whole
// numbers. Of the lower Nyquist frequency, the pass band reaches 0.91 and the stop band, 120 dB below it, starts at 1, so
// nothing folds back audibly. These are the bands of soxr's quality HQ, and the clips' results agree with it.
//
//	r := resample.New(48000, 22050)
//	out := make([]float32, r.Len(len(clip)))
//	r.Resample(out, clip, 0, 0)
package resample

import (
	"math"

	"gonum.org/v1/gonum/blas/gonum"
)

const (
	attenuation = 120    // of the stop band, in dB: below the noise of 16-bit audio
	passEnd     = 0.9136 // as a share of the lower Nyquist frequency
	// halfWidth is that of the window, in samples at the lower rate. Kaiser's formula gives 90.4 for these bands; 5 % more
	// are what they take at 120 dB.
	halfWidth = 95.5
)

// Resampler holds the filter of one ratio. It is immutable and safe for concurrent use.
type Resampler struct {
	up, down int         // the ratio in lowest terms
	half     int         // taps on each side of the output instant, in input samples
	phases   [][]float32 // one filter of 2*half taps for each of the up positions between input samples
}

// New designs the filter that converts from one sample rate to another, in Hz, both positive.
// The formula for the window's shape is from Kaiser, "Nonrecursive digital filter design using the I0-sinh window
// function", 1974.
func New(from, to int) *Resampler {
	g := gcd(from, to)
	r := &Resampler{up: to / g, down: from / g}
	nyquist, window := bands(from, to)
	beta := 0.1102 * (attenuation - 8.7)
	r.half = int(math.Ceil(window))
	cut := nyquist * (passEnd + 1) / 2

	r.phases = make([][]float32, r.up)
	taps := make([]float64, 2*r.half)
	for p := range r.phases {
		sum := 0.0
		for k := range taps {
			t := float64(k-r.half+1) - float64(p)/float64(r.up) // this tap's distance from the output instant
			taps[k] = cut * sinc(cut*t) * kaiser(t/window, beta)
			sum += taps[k]
		}
		r.phases[p] = make([]float32, len(taps))
		for k, v := range taps {
			r.phases[p][k] = float32(v / sum) // the gain at 0 Hz is exactly 1 in every phase
		}
	}
	return r
}

// bands returns the lower Nyquist frequency, as a share of the input's, and half the window's width in input samples.
func bands(from, to int) (nyquist, window float64) {
	nyquist = min(1, float64(to)/float64(from))
	return nyquist, halfWidth / nyquist
}

// Taps returns the number of coefficients that New computes, each a float32: what a filter costs in time and memory. It
// grows with the numbers of the ratio in lowest terms.
func Taps(from, to int) int {
	_, window := bands(from, to)
	return to / gcd(from, to) * 2 * int(math.Ceil(window))
}

// Len returns the number of output samples for n input samples: ceil(n*to/from).
func (r *Resampler) Len(n int) int { return Len(n, r.down, r.up) }

// Len returns ceil(n*to/from), the length of a clip of n samples after conversion.
func Len(n, from, to int) int {
	g := gcd(from, to)
	return (n*(to/g) + from/g - 1) / (from / g)
}

// Span returns the input samples from..to-1 that n output samples from the first on are made of. They may lie outside
// the clip.
func (r *Resampler) Span(first, n int) (from, to int) {
	return first*r.down/r.up - r.half + 1, (first+n-1)*r.down/r.up + r.half + 1
}

// Resample writes the output samples first, first+1, ... of a clip into dst. Output sample i lies at the input
// instant i*from/to. x holds the clip's samples from start on, as far as Span needs them; the clip counts as zero
// outside its ends. Any part of a clip has the same bits as in the whole.
func (r *Resampler) Resample(dst, x []float32, start, first int) {
	for i := range dst {
		t := (first + i) * r.down
		at, taps := t/r.up-r.half+1-start, r.phases[t%r.up]
		lo, hi := max(0, -at), min(len(taps), len(x)-at)
		if lo >= hi {
			dst[i] = 0
			continue
		}
		dst[i] = dot(taps[lo:hi], x[at+lo:at+hi])
	}
}

// dot is the sum of products, in the lanes of the processor's vector unit. How gonum splits the sum into lanes depends on
// where its second vector lies in memory, modulo 16 bytes. Those are the taps, which Go's allocator aligns to 16 bytes, as
// everything of 32 bytes and more: so the bits depend on neither the buffers nor the part of a clip that is asked for.
func dot(taps, x []float32) float32 { return blas.Sdot(len(taps), x[:len(taps)], 1, taps, 1) }

var blas gonum.Implementation

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

func kaiser(x, beta float64) float64 {
	if x <= -1 || x >= 1 {
		return 0
	}
	return besselI0(beta*math.Sqrt(1-x*x)) / besselI0(beta)
}

// besselI0 is the modified Bessel function of the first kind, order 0, by its power series.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
