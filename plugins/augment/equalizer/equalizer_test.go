package equalizer

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "equalizer", New, defaults(), `{"kinds": ["telephone"]}`,
		`{"kinds": ["lowpass", "highpass", "bandpass", "peaking"], "count_min": 8, "count_max": 8}`,
		`{"kinds": ["peaking"], "count_min": 8, "count_max": 8, "gain_db_min": 24, "gain_db_max": 24}`)
}

// TestGolden compares each kind with scipy: within 1e-6 of full scale, which is the rounding to float32.
func TestGolden(t *testing.T) {
	var golden map[string][]float64
	effecttest.Golden(t, "equalizer", &golden)
	if len(golden) != 7 {
		t.Fatalf("%d kinds", len(golden))
	}
	for kind, want := range golden {
		q := 0.7
		if kind == "lowpass" || kind == "highpass" {
			q = math.Sqrt2 / 2 // Butterworth
		}
		config := fmt.Sprintf(`{"kinds": [%q], "count_min": 1, "count_max": 1, "hz_min": 1000, "hz_max": 1000,
			"q_min": %.17g, "q_max": %[2]g, "gain_db_min": 6, "gain_db_max": 6}`, kind, q)
		e := effecttest.Must(t, New(), effecttest.Options{Config: config})
		effecttest.Close(t, kind, e.Apply(t, effecttest.Noise(200), 1), want, 1e-6)
	}
}

// TestTelephone: the band passes within 3 dB, and an octave outside of it is 20 dB down.
func TestTelephone(t *testing.T) {
	for _, rate := range []int{8000, 16000, 22050, 48000} {
		e := effecttest.Must(t, New(), effecttest.Options{Rate: rate, Config: `{"hz_max": 3000, "kinds": ["telephone"]}`})
		gain := func(hz float64) float64 {
			g := 1.0
			for _, f := range e.Stage.Effect.(*effect).telephone {
				g *= f.Response(rate, hz)
			}
			return 20 * math.Log10(g)
		}
		for hz, want := range map[float64][2]float64{
			150: {-200, -20}, 300: {-3.1, -2.9}, 1000: {-0.1, 0.1}, 3400: {-3.1, -2.9}, 6800: {-400, -20},
		} {
			if g := gain(hz); hz < float64(rate)/2 && (g < want[0] || g > want[1]) {
				t.Errorf("%d Hz: the gain at %g Hz is %g dB, want %g to %g", rate, hz, g, want[0], want[1])
			}
		}
	}
}

// TestResponses: each kind does at its frequency what the cookbook says.
func TestResponses(t *testing.T) {
	for kind, want := range map[string]float64{
		"lowpass": -3.01, "highpass": -3.01, "bandpass": 0, "peaking": 9, "lowshelf": 4.5, "highshelf": 4.5,
	} {
		f := design(kind, 16000, 2000, math.Sqrt2/2, 9)
		if got := 20 * math.Log10(f.Response(16000, 2000)); math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %g dB at its frequency, want %g", kind, got, want)
		}
	}
	low, high := biquad.Lowshelf(16000, 1000, 0.7, -12), biquad.Highshelf(16000, 1000, 0.7, -12)
	for at, got := range map[string][2]float64{
		"low shelf":  {low.Response(16000, 20), low.Response(16000, 7900)},
		"high shelf": {high.Response(16000, 7900), high.Response(16000, 20)}} {
		if math.Abs(20*math.Log10(got[0])+12) > 0.1 || math.Abs(20*math.Log10(got[1])) > 0.1 {
			t.Errorf("%s: factors %v, want -12 dB and 0 dB", at, got)
		}
	}
}

// TestDraws: what is reported lies in the ranges, and all kinds and numbers of filters occur.
func TestDraws(t *testing.T) {
	draws, _ := effecttest.Draws(t, New(), effecttest.Options{Width: 2000}, 1000, 60)
	kinds, counts := map[any]bool{}, map[int]bool{}
	for _, d := range draws {
		n := 0
		for ; d[reported[n].kind] != nil; n++ {
			kinds[d[reported[n].kind]] = true
			hz, q, db := d[reported[n].hz].(float64), d[reported[n].q].(float64), d[reported[n].db].(float64)
			if hz < 100 || hz >= 4000 || q < 0.5 || q >= 2 || db < -10 || db >= 6 {
				t.Errorf("a filter of %g Hz, Q %g, %g dB", hz, q, db)
			}
		}
		counts[n] = true
	}
	if len(kinds) != 3 || len(counts) != 4 || counts[0] {
		t.Errorf("kinds %v, numbers of filters %v", kinds, counts)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"hz_min": 5000}`:                  "config: hz_min 5000 is above hz_max 4000\nhint: ",
		`{"hz_max": 11025}`:                 "hz_max 11025 Hz is not below half the sample rate of the waveforms, 22050 Hz\nhint: ",
		`{"kinds": []}`:                     "config: kinds is empty\nhint: ",
		`{"kinds": ["peaking", "peaking"]}`: `config: kinds has "peaking" twice`,
		`{"count_min": 5}`:                  "config: count_min 5 is above count_max 4",
		`{"q_min": 3}`:                      "config: q_min 3 is above q_max 2",
		`{"gain_db_min": 7}`:                "config: gain_db_min 7 is above gain_db_max 6",
		`{"frequency": 7}`:                  `unknown field "frequency"`,
	})
}
