package noise

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/fft"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "noise", New, defaults(), `{"colors": ["white"]}`, `{"colors": ["violet", "blue"]}`,
		`{"colors": ["brown"], "snr_db_min": -5, "snr_db_max": -5}`, loudest)
}

// loudest makes noise a thousand times as strong as the row.
const loudest = `{"snr_db_min": -60, "snr_db_max": -60}`

// TestLimit: a row whose peak would be above that of the port is scaled to it, by the factor that is reported.
func TestLimit(t *testing.T) {
	const n = 5000
	e := effecttest.Must(t, New(), effecttest.Options{Config: loudest})
	draws, out := effecttest.Draws(t, New(), effecttest.Options{Config: loudest}, n, 5)
	for key, d := range draws {
		db, limited := d["limit_db"].(float64)
		if peak := vector.Peak(out[key]); !limited || peak > waveform.MaxAbs || peak < waveform.MaxAbs*(1-1e-6) {
			t.Fatalf("%v: a peak of %v", d, peak)
		}
		want := make([]float64, n)
		for i, x := range e.Apply(t, effecttest.Speech(n, effecttest.Rate), key) {
			want[i] = float64(x) * waveform.DBToAmplitude(db)
		}
		effecttest.Close(t, "limited noise", out[key], want, 2e-6)
	}
	if draws, _ = effecttest.Draws(t, New(), effecttest.Options{}, n, 1); draws[0]["limit_db"] != nil {
		t.Errorf("%v", draws[0])
	}
}

// TestSNR: each row has the drawn ratio, within 0.001 dB, for any color and length.
func TestSNR(t *testing.T) {
	for _, n := range []int{1000, 8191, 30001} {
		draws, out := effecttest.Draws(t, New(), effecttest.Options{}, n, 12)
		clip := effecttest.Speech(n, effecttest.Rate)
		for i, d := range draws {
			var signal, noise float64
			for k, x := range clip {
				signal += float64(x) * float64(x)
				noise += math.Pow(float64(out[i][k])-float64(x), 2)
			}
			got, want := 10*math.Log10(signal/noise), d["snr_db"].(float64)
			if math.Abs(got-want) > 0.001 || want < 10 || want >= 40 {
				t.Errorf("%v: measured %g dB", d, got)
			}
		}
	}
}

// TestColors: over the octaves from 100 Hz to 6.4 kHz, the mean power of a bin falls by the slope of the color, within
// 0.3 dB per octave, and colored noise has nothing below 20 Hz.
func TestColors(t *testing.T) {
	const n = 1 << 16
	for color, slope := range slopes {
		e := effecttest.Must(t, New(), effecttest.Options{
			Config: `{"colors": ["` + color + `"], "snr_db_min": -60, "snr_db_max": -60}`,
		})
		clip := make([]float32, n)
		clip[n/2] = 1e-3
		x := make([]float64, n)
		for i, v := range e.Apply(t, clip, 3) {
			x[i] = float64(v)
		}
		powers := make([]float64, n/2+1)
		fft.New(n).Transform().Power(powers, x)
		mean := func(from, to float64) float64 {
			sum, count := 0.0, 0
			for k, p := range powers {
				if hz := float64(k) * effecttest.Rate / n; hz >= from && hz < to {
					sum += p
					count++
				}
			}
			return 10 * math.Log10(sum/float64(count))
		}
		for hz := 100.0; hz < 3000; hz *= 2 {
			got, want := mean(2*hz, 4*hz)-mean(hz, 2*hz), slope*10*math.Log10(2)
			if math.Abs(got-want) > 0.6 {
				t.Errorf("%s: %.2f dB from %g to %g Hz, want %.2f", color, got, hz, 2*hz, want)
			}
		}
		if got := (mean(3200, 6400) - mean(100, 200)) / 5; math.Abs(got-slope*10*math.Log10(2)) > 0.3 {
			t.Errorf("%s: %.2f dB per octave, want %.2f", color, got, slope*10*math.Log10(2))
		}
		if slope != 0 && mean(0, 19) > mean(1000, 2000)-40 {
			t.Errorf("%s: %.1f dB below 20 Hz, %.1f dB about 1.5 kHz", color, mean(0, 19), mean(1000, 2000))
		}
	}
}

// TestDraws: each color occurs, and a silent row gets no noise.
func TestDraws(t *testing.T) {
	draws, _ := effecttest.Draws(t, New(), effecttest.Options{Width: 100}, 100, 30)
	seen := map[any]bool{}
	for _, d := range draws {
		seen[d["color"]] = true
	}
	if len(seen) != 3 {
		t.Errorf("colors %v", seen)
	}
	e := effecttest.Must(t, New(), effecttest.Options{})
	if silent := make([]float32, 500); !effecttest.SameBits(e.Apply(t, silent, 1), silent) {
		t.Error("a silent row got noise")
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"snr_db_min": 50}`: "config: snr_db_min 50 is above snr_db_max 40\nhint: ",
		`{"colors": []}`:     "config: colors is empty",
	})
}
