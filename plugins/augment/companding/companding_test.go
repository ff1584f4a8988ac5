package companding

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "companding", New, defaults(), `{"coding": "continuous"}`,
		`{"coding": "continuous", "bits_min": 3, "bits_max": 16}`)
}

// TestGolden compares G.711 with the codecs of ITU-T G.191 and Python, to the bit, and the continuous laws with librosa
// and numpy, within 1e-7 of full scale.
func TestGolden(t *testing.T) {
	var golden map[string][]float64
	effecttest.Golden(t, "companding", &golden)
	for _, law := range []string{"mu", "a"} {
		for coding, tolerance := range map[string]float64{"g711": 1e-9, "continuous": 1e-7} {
			e := effecttest.Must(t, New(), effecttest.Options{Config: fmt.Sprintf(
				`{"laws": [%q], "coding": %q, "bits_min": 6, "bits_max": 6}`, law, coding)})
			name := coding + "-" + law
			effecttest.Close(t, name, e.Apply(t, effecttest.Noise(300), 1), golden[name], tolerance)
		}
	}
}

// TestQuantizer: each magnitude gets the level that lies nearest on the compressed scale, and levels stay.
func TestQuantizer(t *testing.T) {
	for law, expand := range expansions {
		for _, bits := range []int{3, 8, 16} {
			q := newQuantizer(expand, bits)
			steps := float64(int(1)<<(bits-1) - 1)
			for i := range 20000 {
				y := float64(i) / 20000
				x := float32(expand(y))
				got := []float32{x, -x}
				q.apply(got)
				near := math.Round(y * steps)
				if edge := math.Abs(y*steps - near); edge > 0.499 {
					continue // between two levels, the rounding of float32 decides
				}
				if want := float32(expand(near / steps)); got[0] != want || got[1] != -want {
					t.Fatalf("%s, %d bits: %g became %g, want %g", law, bits, x, got[0], want)
				}
			}
			got := append([]float32{2, -3, 8}, q.levels...)
			q.apply(got)
			if got[0] != 1 || got[1] != -1 || got[2] != 1 {
				t.Errorf("%s, %d bits: beyond full scale: %v", law, bits, got[:3])
			}
			for i, level := range q.levels {
				if got[3+i] != level {
					t.Errorf("%s, %d bits: level %g became %g", law, bits, level, got[3+i])
				}
			}
		}
	}
}

// TestDraws: both laws and all numbers of bits occur.
func TestDraws(t *testing.T) {
	draws, _ := effecttest.Draws(t, New(), effecttest.Options{Config: `{"coding": "continuous"}`, Width: 99}, 99, 60)
	seen := map[string]bool{}
	for _, d := range draws {
		seen[fmt.Sprint(d["law"], d["bits"])] = true
	}
	if len(seen) != 6 {
		t.Errorf("drawn: %v", seen)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"bits_min": 9}`: "config: bits_min 9 is above bits_max 8\nhint: ",
		`{"laws": []}`:    "config: laws is empty",
	})
}
