package reverb

import (
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "reverb", New, defaults(), `{"length_ms": 20}`, `{"length_ms": 10000}`)
}

// response is that of make_golden.py.
func response() []float32 {
	h := effecttest.Noise(500)
	for i, x := range h {
		h[i] = float32(0.5 * float64(x) * math.Exp(-float64(i)/80))
	}
	h[40] = -0.9375
	return h
}

func configured(t *testing.T, config string, responses ...[]float32) *effecttest.Effect {
	t.Helper()
	data := map[string]string{folder: effecttest.Folder(t, effecttest.Rate, responses...)}
	return effecttest.Must(t, New(), effecttest.Options{Config: config, Folders: data})
}

// TestGolden compares the convolution with scipy: within 1e-6 of full scale.
func TestGolden(t *testing.T) {
	var golden []float64
	effecttest.Golden(t, "reverb", &golden)
	out := configured(t, "", response()).Apply(t, effecttest.Noise(3000), 1)
	var some []float32
	for i := 0; i < len(out); i += 20 {
		some = append(some, out[i])
	}
	effecttest.Close(t, "reverb", some, golden, 1e-6)
}

// TestLengths: for rows and responses of any length, the result is the sum of the delayed samples, within 1e-6.
func TestLengths(t *testing.T) {
	for _, length := range []int{1, 2, 41, 500, 4000} {
		h := slices.Concat(make([]float32, 30), effecttest.Noise(length))
		h[30] = -1
		e := configured(t, "", h)
		for _, n := range []int{1, 5, 333, 5000} {
			x := effecttest.Noise(n)
			want, power, was := make([]float64, n), 0.0, 0.0
			for i := range want {
				for k := max(0, i-length+1); k <= i; k++ {
					tap := float64(int(math.Round(32768*float64(h[30+i-k])))) / 32768
					want[i] += float64(x[k]) * tap
				}
				power += want[i] * want[i]
				was += float64(x[i]) * float64(x[i])
			}
			for i := range want {
				want[i] *= math.Sqrt(was / power)
			}
			effecttest.Close(t, "convolution", e.Apply(t, x, 1), want, 1e-6)
		}
	}
}

// TestCut: a response ends length_ms after its direct sound, and the row keeps its power.
func TestCut(t *testing.T) {
	h := make([]float32, 4000)
	h[100], h[100+440], h[100+442] = -0.9, 0.5, 0.5
	e := configured(t, `{"length_ms": 20}`, h) // 441 samples
	x := make([]float32, 3000)
	x[10] = 1
	out := e.Apply(t, x, 1)
	for i, y := range out {
		if want := i == 10 || i == 450; (math.Abs(float64(y)) > 1e-6) != want {
			t.Errorf("sample %d is %g", i, y)
		}
	}
	if p := waveform.Power(out); math.Abs(p-1) > 1e-6 {
		t.Errorf("the power is %g", p)
	}
}

// TestDraws: each response occurs.
func TestDraws(t *testing.T) {
	data := map[string]string{folder: effecttest.Folder(t, effecttest.Rate, response(), response(), response())}
	draws, _ := effecttest.Draws(t, New(), effecttest.Options{Folders: data}, 1000, 30)
	seen := map[any]bool{}
	for _, d := range draws {
		seen[d["response"]] = true
	}
	if len(seen) != 3 {
		t.Errorf("responses %v", seen)
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		"":                 "the data folder \"responses\" of the stage is missing\nhint: name it with --plugin-data",
		`{"length": 1000}`: `unknown field "length"`,
	})
}
