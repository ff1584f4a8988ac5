package speed

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "speed", New, defaults(), `{"speed_min": 0.5, "speed_max": 0.5}`,
		`{"speed_min": 2, "speed_max": 2}`, `{"speed_min": 1, "speed_max": 1}`)
}

// TestSines: a sine has its frequency times the speed, within 5e-5 of full scale, and one that would lie well above
// half the sample rate is gone.
func TestSines(t *testing.T) {
	const n = 8000
	for _, percent := range []int{80, 93, 110, 125, 200} {
		speed := float64(percent) / 100
		e := effecttest.Must(t, New(), effecttest.Options{
			Config: fmt.Sprintf(`{"speed_min": %g, "speed_max": %[1]g}`, speed),
		})
		for _, hz := range []float64{200, 3000, 4800} {
			out := e.Apply(t, effecttest.Sine(n, hz, 0.5, effecttest.Rate), 1)
			if want := (n*100 + percent - 1) / percent; len(out) != want {
				t.Fatalf("%d %%: %d samples, want %d", percent, len(out), want)
			}
			worst := 0.0
			for i := 400; i < len(out)-400; i++ {
				want := 0.5 * math.Sin(2*math.Pi*hz*speed*float64(i)/effecttest.Rate)
				worst = max(worst, math.Abs(float64(out[i])-want))
			}
			if worst > 5e-5 {
				t.Errorf("%d %%, %g Hz: differs by %g", percent, hz, worst)
			}
		}
	}
	e := effecttest.Must(t, New(), effecttest.Options{Config: `{"speed_min": 1.25, "speed_max": 1.25}`})
	for i, y := range e.Apply(t, effecttest.Sine(n, 10000, 0.5, effecttest.Rate), 1) {
		if i > 400 && i < 6000 && math.Abs(float64(y)) > 5e-5 {
			t.Fatalf("sample %d is %g: a sine of 12,500 Hz remains", i, y)
		}
	}
}

// TestDraws: speeds are whole percents of the range, and a row without room for the result is cut.
func TestDraws(t *testing.T) {
	draws, out := effecttest.Draws(t, New(), effecttest.Options{Width: 4200}, 4000, 40)
	cut := 0
	for i, d := range draws {
		percent := math.Round(100 * d["speed"].(float64))
		if percent < 90 || percent > 110 || d["speed"] != percent/100 {
			t.Errorf("speed %v", d["speed"])
		}
		want := int(math.Ceil(4000 * 100 / percent))
		if want > 4200 {
			want = 4200
			cut++
		}
		if len(out[i]) != want {
			t.Errorf("speed %v: %d samples, want %d", d["speed"], len(out[i]), want)
		}
	}
	if cut == 0 || cut == len(draws) {
		t.Errorf("%d of %d rows were cut", cut, len(draws))
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"speed_min": 1.2}`: "config: speed_min 1.2 is above speed_max 1.1\nhint: ",
	})
}
