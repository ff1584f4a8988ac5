// Package biquad has filters of second order: those of R. Bristow-Johnson's "Cookbook formulae for audio equalizer
// biquad filter coefficients", and how a signal passes a cascade of them.
package biquad

import "math"

// Filter has the coefficients of y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2].
type Filter struct{ B0, B1, B2, A1, A2 float64 }

// Butterworth4 are the Qs of the two sections of a Butterworth filter of fourth order.
var Butterworth4 = [2]float64{0.541196100146197, 1.3065629648763764}

// corner has what all formulas of the cookbook use: the cosine of the frequency, and alpha.
func corner(rate int, hz, q float64) (cos, alpha float64) {
	w := 2 * math.Pi * hz / float64(rate)
	return math.Cos(w), math.Sin(w) / (2 * q)
}

func normalized(b0, b1, b2, a0, a1, a2 float64) Filter {
	return Filter{b0 / a0, b1 / a0, b2 / a0, a1 / a0, a2 / a0}
}

// Lowpass passes frequencies below hz, which is below half the rate.
func Lowpass(rate int, hz, q float64) Filter {
	c, a := corner(rate, hz, q)
	return normalized((1-c)/2, 1-c, (1-c)/2, 1+a, -2*c, 1-a)
}

// Highpass passes frequencies above hz.
func Highpass(rate int, hz, q float64) Filter {
	c, a := corner(rate, hz, q)
	return normalized((1+c)/2, -1-c, (1+c)/2, 1+a, -2*c, 1-a)
}

// Bandpass passes frequencies about hz, where its gain is 1.
func Bandpass(rate int, hz, q float64) Filter {
	c, a := corner(rate, hz, q)
	return normalized(a, 0, -a, 1+a, -2*c, 1-a)
}

// Peaking changes the level of frequencies about hz by db.
func Peaking(rate int, hz, q, db float64) Filter {
	c, a := corner(rate, hz, q)
	g := math.Pow(10, db/40)
	return normalized(1+a*g, -2*c, 1-a*g, 1+a/g, -2*c, 1-a/g)
}

// Lowshelf changes the level of frequencies below hz by db.
func Lowshelf(rate int, hz, q, db float64) Filter {
	c, a := corner(rate, hz, q)
	g := math.Pow(10, db/40)
	s := 2 * math.Sqrt(g) * a
	return normalized(g*((g+1)-(g-1)*c+s), 2*g*((g-1)-(g+1)*c), g*((g+1)-(g-1)*c-s),
		(g+1)+(g-1)*c+s, -2*((g-1)+(g+1)*c), (g+1)+(g-1)*c-s)
}

// Highshelf changes the level of frequencies above hz by db.
func Highshelf(rate int, hz, q, db float64) Filter {
	c, a := corner(rate, hz, q)
	g := math.Pow(10, db/40)
	s := 2 * math.Sqrt(g) * a
	return normalized(g*((g+1)+(g-1)*c+s), -2*g*((g-1)+(g+1)*c), g*((g+1)+(g-1)*c-s),
		(g+1)-(g-1)*c+s, 2*((g-1)-(g+1)*c), (g+1)-(g-1)*c-s)
}

// block is how many samples are filtered between two looks at the state.
const block = 128

// faint is a state that no one hears, and that becomes zero: in digital silence, a state would become denormal, and
// operations on denormal numbers take some 50 times as long.
func faint(s float64) float64 {
	if math.Abs(s) < 1e-60 {
		return 0
	}
	return s
}

// next filters a sample, with the two values that the filter keeps in transposed direct form II. It returns them for
// the next sample: what waits for y is added last, because each sample waits for that of the one before.
func (f *Filter) next(x, s1, s2 float64) (y, next1, next2 float64) {
	y = float64(f.B0*x) + s1
	return y, (float64(f.B1*x) + s2) - float64(f.A1*y), float64(f.B2*x) - float64(f.A2*y)
}

// Cascade filters samples in place, by one filter after the other, from silence on. Four filters at a time take little
// longer than one: each computes while the others wait for their last results.
func Cascade(filters []Filter, samples []float64) {
	for ; len(filters) > 0; filters = filters[min(4, len(filters)):] {
		four := [4]Filter{{B0: 1}, {B0: 1}, {B0: 1}, {B0: 1}}
		copy(four[:], filters)
		if len(filters) > 2 {
			apply4(four, samples)
		} else {
			apply2(four[0], four[1], samples)
		}
	}
}

func apply2(f, g Filter, samples []float64) {
	var s1, s2, t1, t2, y float64
	for len(samples) > 0 {
		part := samples[:min(block, len(samples))]
		for i, x := range part {
			y, s1, s2 = f.next(x, s1, s2)
			y, t1, t2 = g.next(y, t1, t2)
			part[i] = y
		}
		s1, s2, t1, t2 = faint(s1), faint(s2), faint(t1), faint(t2)
		samples = samples[len(part):]
	}
}

// state is what a filter keeps, in memory: the processor has no registers for that of four filters.
type state struct{ s1, s2 float64 }

func (s *state) next(f *Filter, x float64) (y float64) {
	y, s.s1, s.s2 = f.next(x, s.s1, s.s2)
	return y
}

func (s *state) clean() { s.s1, s.s2 = faint(s.s1), faint(s.s2) }

func apply4(f [4]Filter, samples []float64) {
	var s, t, u, v state
	a, b, c, d := f[0], f[1], f[2], f[3]
	for len(samples) > 0 {
		part := samples[:min(block, len(samples))]
		for i, x := range part {
			part[i] = v.next(&d, u.next(&c, t.next(&b, s.next(&a, x))))
		}
		s.clean()
		t.clean()
		u.clean()
		v.clean()
		samples = samples[len(part):]
	}
}

// Pair is two filters, one after the other, with what they keep between samples.
type Pair struct {
	First, Second  Filter
	s1, s2, t1, t2 float64
}

// Power filters samples, which follow those of the call before, and returns the sum of the squares of the results.
func (p *Pair) Power(samples []float32) float64 {
	var y, sum float64
	f, g, s1, s2, t1, t2 := p.First, p.Second, p.s1, p.s2, p.t1, p.t2
	for len(samples) > 0 {
		part := samples[:min(block, len(samples))]
		for _, x := range part {
			y, s1, s2 = f.next(float64(x), s1, s2)
			y, t1, t2 = g.next(y, t1, t2)
			sum += float64(y * y)
		}
		s1, s2, t1, t2 = faint(s1), faint(s2), faint(t1), faint(t2)
		samples = samples[len(part):]
	}
	p.s1, p.s2, p.t1, p.t2 = s1, s2, t1, t2
	return sum
}

// Response is the gain of a filter at a frequency in Hz.
func (f Filter) Response(rate int, hz float64) float64 {
	sin, cos := math.Sincos(-2 * math.Pi * hz / float64(rate))
	z := complex(cos, sin)
	num := complex(f.B0, 0) + z*(complex(f.B1, 0)+z*complex(f.B2, 0))
	den := 1 + z*(complex(f.A1, 0)+z*complex(f.A2, 0))
	return math.Hypot(real(num), imag(num)) / math.Hypot(real(den), imag(den))
}
