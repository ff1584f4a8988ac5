package fft

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// dft computes the transform by its definition.
func dft(x []float64) (power, reals []float64) {
	power, reals = make([]float64, len(x)/2+1), make([]float64, len(x)/2+1)
	for k := range power {
		var re, im float64
		for i, v := range x {
			sin, cos := math.Sincos(-2 * math.Pi * float64(k*i%len(x)) / float64(len(x)))
			re += v * cos
			im += v * sin
		}
		power[k], reals[k] = re*re+im*im, re
	}
	return power, reals
}

// TestSpectrum: the complex spectrum agrees with the power spectrum and the real part, and Inverse undoes it.
func TestSpectrum(t *testing.T) {
	for _, n := range []int{4, 6, 8, 16, 32, 64, 100, 400, 512, 1024, 1200, 2048} {
		rng := rand.New(rand.NewPCG(2, uint64(n)))
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.Float64() - 0.5
		}
		spectrum, back := make([]complex128, n/2+1), make([]float64, n)
		tr := New(n).Transform()
		for range 2 { // the old content of the scratch memory must not matter
			tr.Spectrum(spectrum, x)
			for k, got := range spectrum {
				var want complex128
				for i, v := range x {
					sin, cos := math.Sincos(-2 * math.Pi * float64(k*i%n) / float64(n))
					want += complex(v*cos, v*sin)
				}
				if d := cmplx.Abs(got - want); d > 1e-11*float64(n) {
					t.Errorf("n %d: coefficient %d is %v, want %v", n, k, got, want)
				}
			}
			tr.Inverse(back, spectrum)
			for i, want := range x {
				if d := math.Abs(back[i] - want); d > 1e-13 {
					t.Errorf("n %d: sample %d is %v, want %v", n, i, back[i], want)
				}
			}
		}
	}
}

func TestTransform(t *testing.T) {
	for _, n := range []int{4, 6, 8, 16, 32, 64, 100, 128, 256, 400, 512, 1024, 1200, 2048} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		x := make([]float64, n)
		var energy float64
		for i := range x {
			x[i] = rng.Float64() - 0.5
			energy += x[i] * x[i]
		}
		power, reals := dft(x)
		got := make([]float64, n/2+1)
		tr := New(n).Transform()
		for range 2 { // the old content of the scratch memory must not matter
			tr.Power(got, x)
			for k, want := range power {
				if d := math.Abs(got[k] - want); d > 1e-12*energy*float64(n) {
					t.Errorf("n %d: power %d is %v, want %v", n, k, got[k], want)
				}
			}
			tr.Real(got, x)
			for k, want := range reals {
				if d := math.Abs(got[k] - want); d > 1e-12*energy*float64(n) {
					t.Errorf("n %d: real part %d is %v, want %v", n, k, got[k], want)
				}
			}
		}
	}
}

func BenchmarkPower(b *testing.B) {
	for _, n := range []int{400, 512, 1024, 2048} {
		x, out := make([]float64, n), make([]float64, n/2+1)
		for i := range x {
			x[i] = float64(i*7919%1000) - 500
		}
		plans := map[string]Plan{"gonum": gonumPlan(n)}
		if n&(n-1) == 0 {
			plans["radix4"] = newRadix4(n)
		}
		for name, p := range plans {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				t := p.Transform()
				for b.Loop() {
					t.Power(out, x)
				}
			})
		}
	}
}
