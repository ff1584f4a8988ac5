package room

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "room", New, defaults(), `{"length_m_min": 1.5, "length_m_max": 1.5, "width_m_min": 1.5,
		"width_m_max": 1.5, "height_m_min": 1.5, "height_m_max": 1.5, "rt60_s_min": 0.05, "rt60_s_max": 0.1}`)
}

// example is the room of make_golden.py.
var example = box{size: [3]float64{4.1, 3.2, 2.7}, speaker: [3]float64{1, 2.1, 1.4},
	microphone: [3]float64{2.9, 0.8, 1.1}}

// TestGolden compares the response with the sum of the images that pyroomacoustics finds: within 0.00001 of the largest
// sample.
func TestGolden(t *testing.T) {
	var golden struct {
		Reflection float64
		Response   []float64
	}
	effecttest.Golden(t, "room", &golden)
	b := example
	b.reflection = b.eyring(0.1)
	if math.Abs(b.reflection-golden.Reflection) > 1e-8 {
		t.Errorf("the reflection is %g, want %g", b.reflection, golden.Reflection)
	}
	response := make([]float32, b.samples(0.1, 8000))
	b.respond(response, make([]float32, sumsOf(len(response))), 8000)
	var some []float32
	largest := 0.0
	for i, x := range response {
		if i%2 == 0 {
			some = append(some, x)
		}
		largest = max(largest, math.Abs(float64(x)))
	}
	effecttest.Close(t, "response", some, golden.Response, 0.00001*largest)
}

// TestReverberationTime: the time in which the level falls by 60 dB, extrapolated from -5 to -35 dB of the backward
// integral, is the configured one within a quarter. Eyring's formula holds for a diffuse field, which a box is not.
func TestReverberationTime(t *testing.T) {
	const rate = 16000
	for _, rt60 := range []float64{0.2, 0.4, 0.6} {
		b := example
		b.reflection = b.eyring(rt60)
		response := make([]float32, b.samples(1.3*rt60, rate))
		b.respond(response, make([]float32, sumsOf(len(response))), rate)
		h := make([]float64, len(response))
		for i, x := range response {
			h[i] = float64(x)
		}
		e := effecttest.Must(t, New(), effecttest.Options{Rate: rate})
		biquad.Cascade([]biquad.Filter{e.Stage.Effect.(*effect).highpass}, h)
		rest, sum := make([]float64, len(h)), 0.0
		for i := len(h) - 1; i >= 0; i-- {
			sum += h[i] * h[i]
			rest[i] = sum
		}
		at := func(db float64) float64 {
			for i, r := range rest {
				if 10*math.Log10(r/sum) < db {
					return float64(i) / rate
				}
			}
			return math.Inf(1)
		}
		if got := 2 * (at(-35) - at(-5)); math.Abs(got/rt60-1) > 0.25 {
			t.Errorf("%g s: measured %g s", rt60, got)
		} else {
			t.Logf("%g s: measured %g s", rt60, got)
		}
	}
}

// TestDelays: an image that arrives between two samples is a windowed sinc, within 0.00002.
func TestDelays(t *testing.T) {
	const at = 5
	response, worst := make([]float32, 2*half+at+10), 0.0
	for i := range 1001 {
		fraction, sums := float64(i)/1001, make([]float32, sumsOf(len(response)))
		arrive(sums, at, float32(fraction), 1)
		delayAll(response, sums)
		for j, x := range response {
			want := 0.0
			if t := float64(j-at-half) - fraction; t > -half && t < half {
				want = windowed(t)
			}
			worst = max(worst, math.Abs(float64(x)-want))
		}
	}
	if worst > 0.00002 {
		t.Errorf("a sample is off by %g", worst)
	}
	t.Logf("a sample is off by up to %g", worst)
}

// BenchmarkResponse computes the response of a room with a reverberation time of 0.4 s at 22,050 Hz.
func BenchmarkResponse(b *testing.B) {
	room := example
	room.reflection = room.eyring(0.4)
	response := make([]float32, room.samples(0.4, 22050))
	sums := make([]float32, sumsOf(len(response)))
	for b.Loop() {
		room.respond(response, sums, 22050)
	}
}

// TestFree: without reflections, the row stays as it is, but for the lowest frequencies.
func TestFree(t *testing.T) {
	b := example
	response := make([]float32, 400)
	b.respond(response, make([]float32, sumsOf(len(response))), 16000)
	want := 1 / b.distance()
	for i, x := range response {
		if i == half && math.Abs(float64(x)-want) > 1e-6 || i != half && math.Abs(float64(x)) > 1e-12 {
			t.Errorf("sample %d is %g, the direct sound has %g at sample %d", i, x, want, half)
		}
	}
}

// TestDraws: sizes, times and distances lie in their ranges, and the row keeps its power.
func TestDraws(t *testing.T) {
	draws, out := effecttest.Draws(t, New(), effecttest.Options{}, 9000, 10)
	power := waveform.Power(effecttest.Speech(9000, effecttest.Rate))
	for i, d := range draws {
		for key, limits := range map[string][2]float64{"length_m": {3, 8}, "width_m": {2.5, 6}, "height_m": {2.4, 3.5},
			"rt60_s": {0.15, 0.6}, "distance_m": {0.1, 10}} {
			if v := d[key].(float64); v < limits[0] || v >= limits[1] {
				t.Errorf("%s is %g", key, v)
			}
		}
		if p := waveform.Power(out[i]); math.Abs(p/power-1) > 1e-6 {
			t.Errorf("the power changed by the factor %g", p/power)
		}
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"rt60_s_min": 1}`:   "config: rt60_s_min 1 is above rt60_s_max 0.6\nhint: ",
		`{"length_m_max": 2}`: "config: length_m_min 3 is above length_m_max 2",
		`{"width_m_max": 2}`:  "config: width_m_min 2.5 is above width_m_max 2",
		`{"height_m_max": 2}`: "config: height_m_min 2.4 is above height_m_max 2",
	})
}
