package resample

import (
	"math"
	"slices"
	"testing"
)

func tone(rate int, hz float64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(2 * math.Pi * hz * float64(i) / float64(rate)))
	}
	return x
}

// A tone in the pass band keeps its level and phase. A tone above the new Nyquist frequency vanishes. 2e-6 is -114 dB:
// the filter's 120 dB and the rounding of f32 sums.
func TestTones(t *testing.T) {
	const limit = 2e-6
	for _, c := range []struct {
		from, to int
		hz       float64
		pass     bool
	}{
		{44100, 22050, 1000, true},
		{44100, 22050, 10050, true}, // 0.91 of Nyquist
		{48000, 22050, 9900, true},
		{16000, 22050, 7000, true},
		{24000, 22050, 5000, true},
		{22050, 16000, 7100, true},
		{44100, 22050, 11030, false}, // would alias to 11020 Hz
		{44100, 22050, 12130, false},
		{48000, 22050, 16500, false},
		{22050, 16000, 8100, false},
		{22051, 22050, 10000, true},
		{44056, 22050, 10000, true},
		{44056, 22050, 11030, false},
		{4001, 24000, 1800, true},
		{191999, 22050, 10000, true},
		{191999, 22050, 11100, false},
		{383989, 24000, 10900, true},
	} {
		x := tone(c.from, c.hz, c.from)
		r := New(c.from, c.to)
		y := make([]float32, r.Len(len(x)))
		r.Resample(y, x, 0, 0)
		worst := 0.0
		for i := len(y) / 4; i < len(y)*3/4; i++ {
			want := 0.0
			if c.pass {
				want = math.Sin(2 * math.Pi * c.hz * float64(i) / float64(c.to))
			}
			worst = max(worst, math.Abs(float64(y[i])-want))
		}
		t.Logf("%d -> %d Hz, tone of %.0f Hz: worst error %.1f dB", c.from, c.to, c.hz, 20*math.Log10(worst))
		if worst > limit {
			t.Errorf("%+v: worst error %.1e, want at most %.1e", c, worst, limit)
		}
	}
}

func TestLen(t *testing.T) {
	for _, c := range []struct{ n, from, to, want int }{
		{0, 44100, 22050, 0}, {1, 44100, 22050, 1}, {2, 44100, 22050, 1}, {3, 44100, 22050, 2},
		{48000, 48000, 22050, 22050}, {16000, 16000, 22050, 22050}, {1, 16000, 22050, 2}, {7, 22050, 22050, 7},
	} {
		if got := Len(c.n, c.from, c.to); got != c.want {
			t.Errorf("Len(%d, %d, %d) = %d, want %d", c.n, c.from, c.to, got, c.want)
		}
	}
}

// A crop is computed without converting the whole clip, so a part must have the bits of the whole.
func TestPart(t *testing.T) {
	for _, rate := range []int{48000, 44056} {
		testPart(t, New(rate, 22050), tone(rate, 440, 4801))
	}
}

func testPart(t *testing.T, r *Resampler, x []float32) {
	t.Helper()
	whole := make([]float32, r.Len(len(x)))
	r.Resample(whole, x, 0, 0)
	for _, first := range []int{0, 1, 147, 1000, len(whole) - 1} {
		part := make([]float32, min(200, len(whole)-first))
		from, to := r.Span(first, len(part))
		from, to = max(from, 0), min(to, len(x))
		r.Resample(part, x[from:to], from, first)
		if !slices.Equal(part, whole[first:first+len(part)]) {
			t.Errorf("the part from %d differs from the whole", first)
		}
	}
}

func BenchmarkResample48k(b *testing.B) {
	r := New(48000, 22050)
	x := tone(48000, 440, 2*48000)
	y := make([]float32, r.Len(len(x)))
	b.ReportAllocs()
	for b.Loop() {
		r.Resample(y, x, 0, 0)
	}
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "audio-s/s")
}

func TestTaps(t *testing.T) {
	for _, c := range [][2]int{{48000, 22050}, {16000, 22050}, {44100, 22050}, {22050, 22050}, {384000, 22050}} {
		n := 0
		for _, phase := range New(c[0], c[1]).phases {
			n += len(phase)
		}
		if got := Taps(c[0], c[1]); got != n {
			t.Errorf("Taps(%d, %d) = %d, New has %d", c[0], c[1], got, n)
		}
	}
}

// TestInterpolated: the filter of any two rates is small, and made in a moment.
func TestInterpolated(t *testing.T) {
	for _, c := range [][2]int{
		{22051, 22050}, {44056, 24000}, {4001, 22050}, {383989, 22050}, {383989, 16000}, {22050, 383989},
	} {
		r := New(c[0], c[1])
		if n := len(r.phases) * 2 * r.half; r.steps == r.up || n > maxTaps {
			t.Errorf("%d -> %d: %d coefficients in %d steps", c[0], c[1], n, r.steps)
		}
	}
}

// TestExact: usual rates have all phases.
func TestExact(t *testing.T) {
	for _, from := range []int{
		8000, 11000, 11025, 12000, 16000, 22000, 22050, 24000, 32000, 37800, 44100, 47952, 48000, 50000, 64000, 88200,
		96000, 176400, 192000, 352800, 384000,
	} {
		for _, to := range []int{16000, 22050, 24000, 44100, 48000} {
			if n := Taps(from, to); from != to && n > maxTaps {
				t.Errorf("%d -> %d: %d coefficients", from, to, n)
			}
		}
	}
}

// TestShort: the short filter passes what the other does, within -84 dB, and what lies beyond its stop band is gone.
func TestShort(t *testing.T) {
	const limit = 6e-5
	for _, c := range []struct {
		from, to int
		hz       float64
		pass     bool
	}{
		{110, 100, 20, true}, {110, 100, 44, true}, {120, 100, 57, false}, {80, 100, 35, true}, {200, 100, 44, true},
		{200, 100, 56.5, false}, {200, 100, 80, false}, {97, 100, 42.6, true},
	} {
		x := tone(c.from, c.hz, 4000)
		r := NewShort(c.from, c.to)
		y := make([]float32, r.Len(len(x)))
		r.Resample(y, x, 0, 0)
		worst := 0.0
		for i := len(y) / 4; i < len(y)*3/4; i++ {
			want := 0.0
			if c.pass {
				want = math.Sin(2 * math.Pi * c.hz * float64(i) / float64(c.to))
			}
			worst = max(worst, math.Abs(float64(y[i])-want))
		}
		if worst > limit {
			t.Errorf("%+v: worst error %.1e, want at most %.1e", c, worst, limit)
		}
	}
}
