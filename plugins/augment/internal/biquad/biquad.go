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

// Apply filters samples in place, from silence on. The state is in float64, in transposed direct form II.
func (f Filter) Apply(samples []float64) {
	var s1, s2 float64
	for len(samples) > 0 {
		part := samples[:min(block, len(samples))]
		for i, x := range part {
			y := float64(f.B0*x) + s1
			s1 = float64(f.B1*x) - float64(f.A1*y) + s2
			s2 = float64(f.B2*x) - float64(f.A2*y)
			part[i] = y
		}
		s1, s2 = faint(s1), faint(s2)
		samples = samples[len(part):]
	}
}

// Apply2 filters samples by two filters, in less time than one after the other: the second computes while the first
// waits for its last result.
func Apply2(f, g Filter, samples []float64) {
	var s1, s2, t1, t2 float64
	for len(samples) > 0 {
		part := samples[:min(block, len(samples))]
		for i, x := range part {
			y := float64(f.B0*x) + s1
			s1 = float64(f.B1*x) - float64(f.A1*y) + s2
			s2 = float64(f.B2*x) - float64(f.A2*y)
			z := float64(g.B0*y) + t1
			t1 = float64(g.B1*y) - float64(g.A1*z) + t2
			t2 = float64(g.B2*y) - float64(g.A2*z)
			part[i] = z
		}
		s1, s2, t1, t2 = faint(s1), faint(s2), faint(t1), faint(t2)
		samples = samples[len(part):]
	}
}

// Cascade filters samples by one filter after the other.
func Cascade(filters []Filter, samples []float64) {
	for len(filters) >= 2 {
		Apply2(filters[0], filters[1], samples)
		filters = filters[2:]
	}
	if len(filters) == 1 {
		filters[0].Apply(samples)
	}
}

// Response is the gain of a filter at a frequency in Hz.
func (f Filter) Response(rate int, hz float64) float64 {
	sin, cos := math.Sincos(-2 * math.Pi * hz / float64(rate))
	z := complex(cos, sin)
	num := complex(f.B0, 0) + z*(complex(f.B1, 0)+z*complex(f.B2, 0))
	den := 1 + z*(complex(f.A1, 0)+z*complex(f.A2, 0))
	return math.Hypot(real(num), imag(num)) / math.Hypot(real(den), imag(den))
}
