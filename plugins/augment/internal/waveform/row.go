package waveform

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/shared/fft"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Row is a row of a batch, with the scratch memory of the worker that has it. The memory keeps what an earlier row left
// there.
type Row struct {
	Samples []float32 // the valid samples; at least one

	space  []float32 // the whole row
	rand   *rand.Rand
	pcg    rand.PCG
	fast   *rand.Rand // of pcg
	batch  *stage.Batch
	number int

	power      float64 // of the samples before the effect, or negative if it is not measured
	float32s   [4][]float32
	float64s   [8][]float64
	complexes  [4][]complex128
	transforms [31]fft.Transform
	number64   float64 // what is reported: a pointer to it needs no memory
}

// NewRow returns a row of a stage that runs outside of a batch, such as in a benchmark, with room for width samples.
// What is reported is dropped.
func NewRow(samples []float32, width int, rand *rand.Rand) *Row {
	r := new(Row)
	r.Reset(samples, width, rand)
	return r
}

// Reset makes the row another one, with the scratch memory that it has.
func (r *Row) Reset(samples []float32, width int, rand *rand.Rand) {
	r.space = slices.Grow(r.space[:0], width)[:width]
	r.Samples, r.rand = r.space[:copy(r.space, samples)], rand
	r.power = -1
}

// Resize sets the number of valid samples, and returns them. Those after the former end have the value of the padding:
// the effect writes all. A row has no room for more than its bucket has: what is beyond is cut.
func (r *Row) Resize(n int) []float32 {
	r.Samples = r.space[:min(max(n, 1), len(r.space))]
	return r.Samples
}

// Room is the largest number of samples that the row has room for.
func (r *Row) Room() int { return len(r.space) }

// Rand is the generator of the row.
func (r *Row) Rand() *rand.Rand { return r.rand }

// Fast is a generator that takes two thirds of the time, seeded with two numbers of the row's generator: for noise, of
// which each sample is drawn. Each call seeds it anew.
func (r *Row) Fast() *rand.Rand {
	if r.fast == nil {
		r.fast = rand.New(&r.pcg)
	}
	r.pcg.Seed(r.rand.Uint64(), r.rand.Uint64())
	return r.fast
}

// Chance draws one number, and returns true with the probability p: 0 is never and 1 is always.
func (r *Row) Chance(p float64) bool { return r.rand.Float64() < p }

// Uniform draws one number of [low,high).
func (r *Row) Uniform(low, high float64) float64 { return low + float64((high-low)*r.rand.Float64()) }

// LogUniform draws one number of [low,high), uniform in its logarithm. Both are positive.
func (r *Row) LogUniform(low, high float64) float64 {
	return math.Exp(r.Uniform(math.Log(low), math.Log(high)))
}

// Below draws one number of 0..n-1. Unlike rand.IntN, which repeats biased draws, it takes exactly one number of the
// generator. The remaining bias is n/2^53.
func (r *Row) Below(n int) int { return int(r.rand.Float64() * float64(n)) }

// Integer draws one number of low..high.
func (r *Row) Integer(low, high int) int { return low + r.Below(high-low+1) }

// Report tells the host a number that was drawn for the row.
func (r *Row) Report(name string, value float64) {
	if r.number64 = value; r.batch != nil {
		r.batch.Report(r.number, name, &r.number64)
	}
}

// ReportName tells the host what was chosen for the row, a name that lives as long as the stage.
func (r *Row) ReportName(name string, value *string) {
	if r.batch != nil {
		r.batch.Report(r.number, name, value)
	}
}

// Float32 returns scratch memory number i for n values, of any content.
func (r *Row) Float32(i, n int) []float32 { return grown(&r.float32s[i], n) }

// Float64 returns scratch memory number i for n values, of any content.
func (r *Row) Float64(i, n int) []float64 { return grown(&r.float64s[i], n) }

// Complex returns scratch memory number i for n values, of any content.
func (r *Row) Complex(i, n int) []complex128 { return grown(&r.complexes[i], n) }

func grown[T any](buffer *[]T, n int) []T {
	*buffer = slices.Grow((*buffer)[:0], n)
	return (*buffer)[:n]
}

// Power returns the sum of the squares of the samples before the effect: call it before the samples change.
func (r *Row) Power() float64 {
	if r.power < 0 {
		r.power = Power(r.Samples)
	}
	return r.power
}

// Power returns the sum of the squares of samples.
//
// Products are converted before they are added, here and in the other files: otherwise a compiler may fuse the two
// operations, and the bits would depend on the processor architecture.
func Power[T float32 | float64](samples []T) float64 {
	var a, b, c, d float64 // four sums, because each addition waits for the one before it
	i := 0
	for ; i+4 <= len(samples); i += 4 {
		s := samples[i : i+4 : i+4]
		w, x, y, z := float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])
		a += float64(w * w)
		b += float64(x * x)
		c += float64(y * y)
		d += float64(z * z)
	}
	for _, s := range samples[i:] {
		a += float64(float64(s) * float64(s))
	}
	return (a + b) + (c + d)
}

// Scale multiplies samples by a factor, which is rounded to float32.
func Scale(samples []float32, factor float64) {
	if factor == 1 {
		return
	}
	vector.Scale(samples, float32(factor))
}

// Mix adds noise to the samples of a row, at a ratio of their powers over the whole row in dB. noise has as many
// values, and their power is its sum of squares. A silent row, or noise without power, has no such ratio and leaves the
// row as it is.
func (r *Row) Mix(noise []float64, power, snrDB float64) {
	if r.Power() == 0 || power == 0 {
		return
	}
	scale := math.Sqrt(r.Power() / (power * DBToPower(snrDB)))
	for i, x := range r.Samples {
		r.Samples[i] = float32(float64(x) + float64(scale*noise[i]))
	}
}

// DBToPower and DBToAmplitude convert a level in dB into a factor of powers, or of amplitudes.
func DBToPower(db float64) float64     { return math.Pow(10, db/10) }
func DBToAmplitude(db float64) float64 { return math.Pow(10, db/20) }

// Part copies samples from one on, with zeros outside.
func Part(dst []float64, samples []float32, from int) {
	lo := min(max(-from, 0), len(dst))
	hi := min(max(len(samples)-from, lo), len(dst))
	clear(dst[:lo])
	for i, x := range samples[min(from+lo, len(samples)):min(from+hi, len(samples))] {
		dst[lo+i] = float64(x)
	}
	clear(dst[hi:])
}
