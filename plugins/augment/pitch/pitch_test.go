package pitch

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "pitch", New, defaults(), `{"semitones_min": -12, "semitones_max": -12}`,
		`{"semitones_min": 12, "semitones_max": 12}`, `{"semitones_min": 0, "semitones_max": 0}`)
}

// TestSines: a sine gets the frequency of the shift, within 0.1 %, and keeps its length and, within 0.5 dB, its level.
func TestSines(t *testing.T) {
	const n = 40000
	for _, semitones := range []float64{-12, -5, -1, 2, 4, 12} {
		factor := float64(percent(semitones)) / 100
		if cents := 1200 * math.Abs(math.Log2(factor)-semitones/12); cents > 9 {
			t.Errorf("%g semitones: the factor %g is %g cents away", semitones, factor, cents)
		}
		e := effecttest.Must(t, New(), effecttest.Options{
			Config: fmt.Sprintf(`{"semitones_min": %g, "semitones_max": %[1]g}`, semitones),
		})
		for _, hz := range []float64{110, 220, 1000} {
			out := e.Apply(t, effecttest.Sine(n, hz, 0.5, effecttest.Rate), 1)
			if len(out) != n {
				t.Fatalf("%d samples", len(out))
			}
			power := 0.0
			first, last, count := 0.0, 0.0, 0
			for i := 2000; i < n-2000; i++ {
				power += float64(out[i]) * float64(out[i])
				if out[i-1] < 0 && out[i] >= 0 { // where it crosses zero upwards
					at := float64(i) - float64(out[i])/float64(out[i]-out[i-1])
					if count == 0 {
						first = at
					}
					last = at
					count++
				}
			}
			got, want := float64(count-1)/(last-first)*effecttest.Rate, hz*factor
			if math.Abs(got/want-1) > 0.001 {
				t.Errorf("%g Hz by %g semitones: %g Hz, want %g", hz, semitones, got, want)
			}
			if db := 10 * math.Log10(power/(n-4000)/0.125); math.Abs(db) > 0.5 {
				t.Errorf("%g Hz by %g semitones: the level changed by %.2f dB", hz, semitones, db)
			}
		}
	}
}

func TestDraws(t *testing.T) {
	draws, _ := effecttest.Draws(t, New(), effecttest.Options{Width: 3000}, 3000, 20)
	up, down := 0, 0
	for _, d := range draws {
		s := d["semitones"].(float64)
		if s < -3.1 || s > 3.1 {
			t.Errorf("%g semitones", s)
		}
		if s > 0 {
			up++
		} else {
			down++
		}
	}
	if up == 0 || down == 0 {
		t.Errorf("%d up, %d down", up, down)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"semitones_min": 4}`: "config: semitones_min 4 is above semitones_max 3\nhint: ",
	})
}
