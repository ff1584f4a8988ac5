package gain

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "gain", New, defaults(), `{"drift_db_max": 20}`, `{"gain_db_min": 0, "gain_db_max": 0}`,
		`{"gain_db_min": 24, "gain_db_max": 24}`)
}

// TestGain: each sample has the gain of its time, within 1e-6 of its value.
func TestGain(t *testing.T) {
	for _, config := range []string{"", `{"drift_db_max": 20}`} {
		draws, out := effecttest.Draws(t, New(), effecttest.Options{Config: config}, 9000, 10)
		clip := effecttest.Speech(9000, effecttest.Rate)
		for i, d := range draws {
			gain, drift := d["gain_db"].(float64), 0.0
			if config != "" {
				drift = d["drift_db"].(float64)
			}
			if gain < -12 || gain >= 6 || math.Abs(drift) > 20 {
				t.Errorf("%v is outside of the ranges", d)
			}
			for k, x := range clip {
				at := float64(k)/float64(len(clip)-1) - 0.5
				want := float64(x) * math.Pow(10, (gain+drift*at)/20)
				if math.Abs(float64(out[i][k])-want) > 1e-6*math.Abs(want) {
					t.Fatalf("%v: sample %d is %g, want %g", d, k, out[i][k], want)
				}
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"gain_db_min": 7}`: "config: gain_db_min 7 is above gain_db_max 6\nhint: ",
	})
}
