// Package resample converts sample rates with a Kaiser-windowed sinc in polyphase form, for any ratio of integers. A
// ratio of large numbers, such as 22051 to 22050, has too many phases: it takes the two nearest of some and
// interpolates. The pass band reaches 0.91 of the lower Nyquist frequency. The stop band, 120 dB down, starts at 1, so
// there is no audible aliasing. These are the bands of soxr's quality HQ, and the results agree with it.
//
//	r := resample.New(48000, 22050)
//	out := make([]float32, r.Len(len(clip)))
//	r.Resample(out, clip, 0, 0)
package resample

import (
	"math"

	"gonum.org/v1/gonum/blas/gonum"
)

// quality is what a filter does.
type quality struct {
	attenuation     float64 // of the stop band, in dB
	passEnd, stopAt float64 // the bands, as shares of the lower Nyquist frequency
	// halfWidth is half the width of the window, in samples at the lower rate.
	halfWidth float64
}

var (
	// high has a stop band below the noise of 16-bit audio. Kaiser's formula gives a half width of 90.4 for these
	// bands; 5 % more are needed for 120 dB.
	high = quality{attenuation: 120, passEnd: 0.9136, stopAt: 1, halfWidth: 95.5}
	// short has a quarter of the taps: what lies just beyond the Nyquist frequency is not gone.
	short = quality{attenuation: 90, passEnd: 0.88, stopAt: 1.12, halfWidth: 24}
)

// Resampler holds the filter of one ratio. It is immutable and safe for concurrent use.
type Resampler struct {
	up, down int         // the ratio in lowest terms
	half     int         // taps on each side of the output time, in input samples
	phases   [][]float32 // filters of 2*half taps, at equal distances between two input samples
	// steps is the number of phases between two input samples: up, or fewer if the filter is interpolated. Then there
	// is one phase more, that of the second sample.
	steps int
}

const (
	// maxTaps is the largest number of coefficients of a filter that has all phases: 4 MiB. Usual rates need at most
	// half of that (384,000 to 22,050 Hz: 489,216).
	maxTaps = 1 << 20
	// density is the number of phases of an interpolated filter for each period of the lower rate. The error of linear
	// interpolation is pi^2/(8*density^2) of the highest frequency: -131 dB.
	density = 2048
)

// New designs the filter for the conversion from one sample rate to another, in Hz, both positive. The formula for the
// window is from Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", 1974.
func New(from, to int) *Resampler { return design(from, to, high) }

// NewShort designs a filter with a quarter of the taps of New, which takes half the time. It passes up to 0.88 of the
// lower Nyquist frequency. Its stop band is 90 dB down, but begins at 1.12 of it: what lies between is only softer, and
// is mirrored where it lies beyond 1.
func NewShort(from, to int) *Resampler { return design(from, to, short) }

func design(from, to int, q quality) *Resampler {
	g := gcd(from, to)
	r := &Resampler{up: to / g, down: from / g}
	nyquist, window := q.bands(from, to)
	beta := 0.1102 * (q.attenuation - 8.7)
	r.half = int(math.Ceil(window))
	cut := nyquist * (q.passEnd + q.stopAt) / 2

	r.steps = r.up
	phases := r.up
	if r.up*2*r.half > maxTaps {
		r.steps = int(math.Ceil(density * nyquist))
		phases = r.steps + 1
	}
	r.phases = make([][]float32, phases)
	taps := make([]float64, 2*r.half)
	for p := range r.phases {
		sum := 0.0
		for k := range taps {
			t := float64(k-r.half+1) - float64(p)/float64(r.steps) // distance of this tap from the output time
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
func (q quality) bands(from, to int) (nyquist, window float64) {
	nyquist = min(1, float64(to)/float64(from))
	return nyquist, q.halfWidth / nyquist
}

// Taps returns the number of f32 coefficients of a filter of New with all phases. It grows with the numbers of the
// ratio in lowest terms.
func Taps(from, to int) int {
	_, window := high.bands(from, to)
	return to / gcd(from, to) * 2 * int(math.Ceil(window))
}

// Len returns the number of output samples for n input samples: ceil(n*to/from).
func (r *Resampler) Len(n int) int { return Len(n, r.down, r.up) }

// Len returns ceil(n*to/from), the length of a clip of n samples after conversion.
func Len(n, from, to int) int {
	g := gcd(from, to)
	return (n*(to/g) + from/g - 1) / (from / g)
}

// Span returns the input samples from..to-1 that determine n output samples, starting at first. They may lie outside
// the clip.
func (r *Resampler) Span(first, n int) (from, to int) {
	return first*r.down/r.up - r.half + 1, (first+n-1)*r.down/r.up + r.half + 1
}

// Inner computes output samples of which all taps lie in x: each is the sum of products of x from at on with
// phases[phase], in the order of gonum's Sdot. From one to the next, phase grows by down; as often as it is len(phases)
// or more, it falls by as much and at grows by one. at begins at 0.
type Inner func(dst, x []float32, phases [][]float32, phase, down int)

// Resample writes the output samples first, first+1, ... of a clip to dst. Output sample i lies at the input time
// i*from/to. x holds the clip's samples from start on, as far as Span needs them. The clip counts as zero outside its
// ends. Any part of a clip has the same bits as in the whole.
func (r *Resampler) Resample(dst, x []float32, start, first int) {
	r.ResampleWith(nil, dst, x, start, first)
}

// ResampleWith is Resample with a function of the caller for all samples but those at the ends of x, or nil for that of
// the package. Filters that are interpolated do without it.
func (r *Resampler) ResampleWith(inner Inner, dst, x []float32, start, first int) {
	if inner == nil {
		inner = inside
	}
	t := first * r.down
	at, phase := t/r.up-r.half+1-start, t%r.up
	step, rest := r.down/r.up, r.down%r.up // divisions take longer than additions
	for len(dst) > 0 {
		if last := len(x) - 2*r.half; r.steps == r.up && at >= 0 && at <= last {
			n := min(len(dst), ((last-at+1)*r.up-phase-1)/r.down+1)
			inner(dst[:n], x[at:], r.phases, phase, r.down)
			t := phase + n*r.down
			dst, at, phase = dst[n:], at+t/r.up, t%r.up
			continue
		}
		dst[0] = r.end(x, at, phase)
		dst, at, phase = dst[1:], at+step, phase+rest
		if phase >= r.up {
			at, phase = at+1, phase-r.up
		}
	}
}

func inside(dst, x []float32, phases [][]float32, phase, down int) {
	up, at := len(phases), 0
	step, rest := down/up, down%up
	for i := range dst {
		dst[i] = dot(phases[phase], x[at:])
		if at, phase = at+step, phase+rest; phase >= up {
			at, phase = at+1, phase-up
		}
	}
}

// end returns an output sample that may have taps outside of x, or an interpolated filter.
func (r *Resampler) end(x []float32, at, phase int) float32 {
	lo, hi := max(0, -at), min(2*r.half, len(x)-at)
	if lo >= hi {
		return 0
	}
	part := x[at+lo : at+hi]
	if r.steps == r.up {
		return dot(r.phases[phase][lo:hi], part)
	}
	p, between := phase*r.steps/r.up, float32(phase*r.steps%r.up)/float32(r.up)
	a, b := dot(r.phases[p][lo:hi], part), dot(r.phases[p+1][lo:hi], part)
	return a + between*(b-a)
}

// dot returns the sum of products, computed in the lanes of the vector unit. How gonum splits the sum into lanes
// depends on the address of its second vector modulo 16 bytes. That vector is the taps, which Go's allocator aligns to
// 16 bytes, like everything of 32 bytes and more. So the bits depend neither on the buffers nor on the requested part.
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
