package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/shared/fft"
	"github.com/xtts-host/xtts-host/shared/resample"
)

// samples returns numbers of every magnitude, with zeros of both signs and subnormal numbers among them.
func samples(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	zero := float32(math.Copysign(0, -1))
	special := []float32{0, zero, 1e-40, -1e-45, math.MaxFloat32, -math.MaxFloat32, 0.25, -0.25}
	out := make([]float32, n)
	for i := range out {
		if out[i] = float32(r.NormFloat64() * math.Pow(10, 10*r.Float64()-8)); i%5 == 0 {
			out[i] = special[r.IntN(len(special))]
		}
	}
	return out
}

// rows calls test with rows of every length up to a few steps of the loops, at every alignment, and with long ones.
func rows(test func(x []float32)) {
	for n := range 70 {
		for from := range 9 {
			test(samples(n + from)[from:])
		}
	}
	for _, n := range []int{9001, 110250} {
		test(samples(n)[1:])
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, x := range got {
		if math.Float32bits(x) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %d samples: sample %d is %g, want %g", what, len(got), i, x, want[i])
		}
	}
}

// TestClip: Scale and Clip have the bits of products in Go.
func TestClip(t *testing.T) {
	rows(func(x []float32) {
		for _, factor := range []float32{0, 0.5, 0.7071068, -1.9952623, 1e-39, 3e38} {
			for _, limit := range []float32{3e38, 0.25, 1e-40} {
				got, want := append([]float32{}, x...), append([]float32{}, x...)
				clipEach(want, limit, factor)
				Clip(got, limit, factor)
				sameBits(t, "Clip", got, want)
			}
			got, want := append([]float32{}, x...), append([]float32{}, x...)
			scaleEach(want, factor)
			Scale(got, factor)
			sameBits(t, "Scale", got, want)
		}
	})
}

// TestSoftClip: samples of any magnitude have the bits of those in Go.
func TestSoftClip(t *testing.T) {
	rows(func(x []float32) {
		for _, inverse := range []float32{1, 33.3, 0.01, 1e-30} {
			for _, level := range []float32{1, 0.3, -2} {
				got, want := append([]float32{}, x...), append([]float32{}, x...)
				softClipEach(want, inverse, level)
				SoftClip(got, inverse, level)
				sameBits(t, "SoftClip", got, want)
			}
		}
	})
}

// TestTanh: within 5e-7 of that of package math.
func TestTanh(t *testing.T) {
	for x := -40.0; x <= 40; x += 0.00137 {
		if got, want := Tanh(float32(x)), math.Tanh(float64(float32(x))); math.Abs(float64(got)-want) > 5e-7 {
			t.Fatalf("tanh(%g) is %g, want %g", x, got, want)
		}
	}
	if Tanh(1e9) != 1 || Tanh(-1e9) != -1 || Tanh(0) != 0 {
		t.Error("tanh of large numbers and of 0")
	}
}

// TestPeak: Peak finds the largest magnitude at any place, and any sample that is not finite.
func TestPeak(t *testing.T) {
	rows(func(x []float32) {
		if got, want := math.Float32bits(Peak(x)), peakEach(x); got != want {
			t.Fatalf("%d samples: the peak is %#x, want %#x", len(x), got, want)
		}
		if len(x) > 100 {
			return
		}
		for i, was := range x {
			for _, special := range []float64{math.NaN(), math.Inf(-1), -math.MaxFloat32} {
				x[i] = float32(special)
				if got := float64(Peak(x)); got != math.Abs(special) && !math.IsNaN(special) ||
					math.IsNaN(got) != math.IsNaN(special) {
					t.Fatalf("sample %d of %d is %g: the peak is %g", i, len(x), special, got)
				}
			}
			x[i] = was
		}
	})
}

func sameNumbers(t *testing.T, what string, got, want []complex128) {
	t.Helper()
	for k, c := range got {
		if d := want[k]; math.Float64bits(real(c)) != math.Float64bits(real(d)) ||
			math.Float64bits(imag(c)) != math.Float64bits(imag(d)) {
			t.Fatalf("%s of %d: number %d is %v, want %v", what, len(got), k, c, d)
		}
	}
}

// TestMultiplyAdd: sums have the bits of those in Go.
func TestMultiplyAdd(t *testing.T) {
	for n := range 40 {
		spectrum := func(seed int) []complex128 {
			out := make([]complex128, n)
			for i, v := range samples(2*n + seed)[:n] {
				out[i] = complex(float64(v), float64(samples(3*n + seed)[n-1-i]))
			}
			return out
		}
		a, b, got, want := spectrum(1), spectrum(2), spectrum(3), spectrum(3)
		for range 2 {
			MultiplyAdd(got, a, b)
			multiplyAddEach(want, a, b)
			sameNumbers(t, "MultiplyAdd", got, want)
		}
	}
}

// TestRadix4: transforms have the bits of those of package fft, which computes in Go.
func TestRadix4(t *testing.T) {
	if Radix4 == nil {
		t.Skip("package fft computes on this processor")
	}
	for n := 8; n <= 1<<17; n *= 2 {
		x, spectra, back := make([]float64, n), [2][]complex128{}, [2][]float64{}
		for i, v := range samples(n) {
			x[i] = float64(v)
		}
		for i, plan := range []fft.Plan{fft.New(n), fft.NewWith(n, Radix4)} {
			spectra[i], back[i] = make([]complex128, n/2+1), make([]float64, n)
			tr := plan.Transform()
			tr.Spectrum(spectra[i], x)
			tr.Inverse(back[i], spectra[i])
		}
		sameNumbers(t, "Spectrum", spectra[1], spectra[0])
		for i, v := range back[0] {
			if math.Float64bits(v) != math.Float64bits(back[1][i]) {
				t.Fatalf("n %d: sample %d of the inverse is %v, want %v", n, i, back[1][i], v)
			}
		}
	}
}

// TestResample: samples have the bits of those of package resample, with any number of taps, length and place.
func TestResample(t *testing.T) {
	if Resample == nil {
		t.Skip("package resample computes on this processor")
	}
	for _, speed := range []int{50, 64, 90, 99, 101, 103, 110, 117, 125, 133, 150, 200} {
		filter := resample.NewShort(speed, 100)
		for _, n := range []int{1, 40, 60, 61, 62, 150, 1000, 3001} {
			x := samples(n + 1)[1:]
			for i, v := range x {
				x[i] = max(min(v, 1), -1)
			}
			for _, first := range []int{0, 7} {
				count := max(filter.Len(n)-first, 0)
				got, want := make([]float32, count), make([]float32, count)
				filter.Resample(want, x, 0, first)
				filter.ResampleWith(Resample, got, x, 0, first)
				sameBits(t, "Resample", got, want)
			}
		}
	}
}
