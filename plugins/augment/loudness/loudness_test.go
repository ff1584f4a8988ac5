package loudness

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/biquad"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "loudness", New, defaults(), `{"lufs_min": 0, "lufs_max": 0, "max_peak_db": 18}`)
}

// measure returns the loudness of samples.
func measure(rate int, samples []float32) float64 {
	m := newMeter(rate)
	return m.integrated(samples, make([]float64, m.steps(len(samples))))
}

// TestKWeighting: at 48 kHz, the filters have the coefficients of ITU-R BS.1770-4, tables 1 and 2.
func TestKWeighting(t *testing.T) {
	m := newMeter(48000)
	for name, c := range map[string][2]biquad.Filter{
		"shelf": {m.shelf, {B0: 1.53512485958697, B1: -2.69169618940638, B2: 1.19839281085285,
			A1: -1.69065929318241, A2: 0.73248077421585}},
		"high pass": {m.highpass, {B0: 1, B1: -2, B2: 1, A1: -1.99004745483398, A2: 0.99007225036621}},
	} {
		g, w := c[0], c[1]
		for _, d := range []float64{g.B0 - w.B0, g.B1 - w.B1, g.B2 - w.B2, g.A1 - w.A1, g.A2 - w.A2} {
			if math.Abs(d) > 1e-12 {
				t.Errorf("%s: %+v, want %+v", name, g, w)
			}
		}
	}
}

// part is a sine of 1 kHz in both channels, at a level in dBFS.
type part struct{ seconds, db float64 }

// TestEBU has the cases of EBU Tech 3341 (2016), table 1, that are sines and measure the integrated loudness: within
// 0.1 LU. There the sine is in two channels, whose powers add up: one channel alone has 3.01 LU less.
func TestEBU(t *testing.T) {
	for name, c := range map[string]struct {
		parts []part
		want  float64
	}{
		"1": {[]part{{20, -23}}, -23},
		"2": {[]part{{20, -33}}, -33},
		"3": {[]part{{10, -36}, {60, -23}, {10, -36}}, -23},
		"4": {[]part{{10, -72}, {10, -36}, {60, -23}, {10, -36}, {10, -72}}, -23},
		"5": {[]part{{20, -26}, {20.1, -20}, {20, -26}}, -23},
	} {
		for _, rate := range []int{16000, 22050, 48000} {
			var x []float32
			for _, p := range c.parts {
				x = append(x, effecttest.Sine(int(math.Round(p.seconds*float64(rate))), 1000, math.Pow(10, p.db/20),
					float64(rate))...)
			}
			if got := measure(rate, x) + 10*math.Log10(2); math.Abs(got-c.want) > 0.1 {
				t.Errorf("case %s at %d Hz: %.3f LUFS, want %g", name, rate, got, c.want)
			} else {
				t.Logf("case %s at %d Hz: %.3f LUFS", name, rate, got)
			}
		}
	}
}

// TestGolden compares a signal with pauses with pyloudnorm, within 0.001 LU.
func TestGolden(t *testing.T) {
	var golden map[string]float64
	effecttest.Golden(t, "loudness", &golden)
	for name, want := range golden {
		rate, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, 3*rate)
		for i := range x {
			s := float64(i) / float64(rate)
			v := 0.05 * math.Sin(2*math.Pi*3000*s)
			if math.Mod(s, 1) < 0.6 {
				v += 0.3 * math.Sin(2*math.Pi*220*s)
			}
			x[i] = float32(v)
		}
		if got := measure(rate, x); math.Abs(got-want) > 0.001 {
			t.Errorf("%d Hz: %.4f LUFS, pyloudnorm has %.4f", rate, got, want)
		} else {
			t.Logf("%d Hz: %.4f LUFS, pyloudnorm has %.4f", rate, got, want)
		}
	}
	if len(golden) < 5 {
		t.Errorf("golden.json has %d rates", len(golden))
	}
}

// TestTarget: what the stage makes of a row has the drawn loudness, within 0.1 LU, unless the peak is in the way.
func TestTarget(t *testing.T) {
	for key := range 10 {
		for _, n := range []int{2000, 8820, 60000} { // less than a block, one block, several
			want := -10 - 3*float64(key)
			config := fmt.Sprintf(`{"lufs_min": %g, "lufs_max": %[1]g, "max_peak_db": 18}`, want)
			e := effecttest.Must(t, New(), effecttest.Options{Config: config})
			out := e.Apply(t, effecttest.Speech(n, effecttest.Rate), key)
			if got := measure(effecttest.Rate, out); math.Abs(got-want) > 0.1 {
				t.Errorf("%d samples: %g LUFS, want %g", n, got, want)
			}
		}
	}
	e := effecttest.Must(t, New(), effecttest.Options{Config: `{"lufs_min": -5, "lufs_max": -5, "max_peak_db": -3}`})
	peak := 0.0
	for _, x := range e.Apply(t, effecttest.Speech(60000, effecttest.Rate), 1) {
		peak = max(peak, math.Abs(float64(x)))
	}
	if db := 20 * math.Log10(peak); math.Abs(db+3) > 0.001 {
		t.Errorf("the peak is at %g dB, want -3", db)
	}
}

// TestQuiet: a row below the absolute gate has no loudness.
func TestQuiet(t *testing.T) {
	e := effecttest.Must(t, New(), effecttest.Options{})
	quiet := effecttest.Sine(30000, 1000, 2.5e-4, effecttest.Rate) // -75 LUFS
	if !effecttest.SameBits(e.Apply(t, quiet, 1), quiet) {
		t.Error("a row below -70 LUFS was changed")
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"lufs_min": -10}`: "config: lufs_min -10 is above lufs_max -18\nhint: ",
	})
}
