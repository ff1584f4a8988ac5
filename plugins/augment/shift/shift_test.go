package shift

import (
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "shift", New, defaults(), `{"mode": "circular"}`, `{"shift_ms_min": -60000, "shift_ms_max": 60000}`)
}

// TestGolden compares circular shifts with numpy.roll, to the bit.
func TestGolden(t *testing.T) {
	var golden map[string][]float64
	effecttest.Golden(t, "shift", &golden)
	for name, config := range map[string]string{
		"later":   `{"mode": "circular", "shift_ms_min": 7, "shift_ms_max": 7}`,
		"earlier": `{"mode": "circular", "shift_ms_min": -7, "shift_ms_max": -7}`,
	} {
		e := effecttest.Must(t, New(), effecttest.Options{Config: config, Rate: 1000})
		effecttest.Close(t, name, e.Apply(t, effecttest.Noise(50), 1), golden[name], 1e-8)
	}
}

// TestZeros: what is moved out is lost, and zeros follow.
func TestZeros(t *testing.T) {
	draws, out := effecttest.Draws(t, New(), effecttest.Options{}, 9000, 20)
	clip := effecttest.Speech(9000, effecttest.Rate)
	later, earlier := 0, 0
	for i, d := range draws {
		by := int(d["shift_samples"].(float64))
		if by > 0 {
			later++
		} else {
			earlier++
		}
		for k := range clip {
			want := float32(0)
			if at := k - by; at >= 0 && at < len(clip) {
				want = clip[at]
			}
			if out[i][k] != want {
				t.Fatalf("shift %d: sample %d is %g, want %g", by, k, out[i][k], want)
			}
		}
		if by < -2206 || by > 2206 {
			t.Errorf("a shift of %d samples", by)
		}
	}
	if later == 0 || earlier == 0 {
		t.Errorf("%d later, %d earlier", later, earlier)
	}
}

// TestHalf: a row moves by half of its length at most.
func TestHalf(t *testing.T) {
	e := effecttest.Must(t, New(), effecttest.Options{Config: `{"shift_ms_min": 5000, "shift_ms_max": 5000}`})
	out := e.Apply(t, []float32{1, 2, 3, 4, 5}, 1)
	if !effecttest.SameBits(out, []float32{0, 0, 1, 2, 3}) {
		t.Errorf("%v", out)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"shift_ms_min": 200}`: "config: shift_ms_min 200 is above shift_ms_max 100\nhint: ",
	})
}
