package clipping

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "clipping", New, defaults(), `{"depth_db_min": 60, "depth_db_max": 60, "make_up": false}`,
		`{"depth_db_min": 0, "depth_db_max": 0}`)
}

// TestGolden compares both kinds with numpy: within 5e-7 of full scale.
func TestGolden(t *testing.T) {
	var golden map[string][]float64
	effecttest.Golden(t, "clipping", &golden)
	for _, kind := range []string{"hard", "soft"} {
		e := effecttest.Must(t, New(), effecttest.Options{Config: fmt.Sprintf(
			`{"kinds": [%q], "depth_db_min": 6, "depth_db_max": 6, "make_up": false}`, kind)})
		effecttest.Close(t, kind, e.Apply(t, effecttest.Noise(100), 1), golden[kind], 5e-7)
	}
}

// TestMakeUp: the peak stays, and the row becomes louder the deeper the threshold is.
func TestMakeUp(t *testing.T) {
	draws, out := effecttest.Draws(t, New(), effecttest.Options{Width: 9000}, 9000, 30)
	kinds := map[any]bool{}
	for i, d := range draws {
		kinds[d["kind"]] = true
		peak, count := 0.0, 0
		for _, x := range out[i] {
			peak = max(peak, math.Abs(float64(x)))
		}
		for _, x := range out[i] {
			if math.Abs(float64(x)) > 0.9999*peak {
				count++
			}
		}
		want := 0.0
		for _, x := range effecttest.Speech(9000, effecttest.Rate) {
			want = max(want, math.Abs(float64(x)))
		}
		if math.Abs(peak-want) > 1e-6 || d["kind"] == "hard" && count < 10 {
			t.Errorf("%v: a peak of %g, want %g, with %d samples at it", d, peak, want, count)
		}
		if depth := d["depth_db"].(float64); depth < 3 || depth >= 15 {
			t.Errorf("a depth of %g dB", depth)
		}
	}
	if len(kinds) != 2 {
		t.Errorf("kinds %v", kinds)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"depth_db_min": 20}`: "config: depth_db_min 20 is above depth_db_max 15\nhint: ",
		`{"kinds": []}`:        "config: kinds is empty",
	})
}
