package trim

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "trim", New, defaults(), `{"threshold_db": 3, "margin_ms_min": 0, "margin_ms_max": 300}`,
		`{"frame_ms": 1}`)
}

// clip returns noise with soft noise before and after it, as make_golden.py has it.
func clip() []float32 {
	soft := func(n int) []float32 {
		out := effecttest.Noise(n)
		for i, x := range out {
			out[i] = float32(0.001 * float64(x))
		}
		return out
	}
	return slices.Concat(soft(9000), effecttest.Noise(12000), soft(7000))
}

// TestGolden compares where the row is cut with librosa.effects.trim, to the sample.
func TestGolden(t *testing.T) {
	var golden struct{ Start, End int }
	effecttest.Golden(t, "trim", &golden)
	e := effecttest.Must(t, New(), effecttest.Options{
		Config: `{"threshold_db": 40, "frame_ms": 92.88, "margin_ms_min": 0, "margin_ms_max": 0}`, // 2048 samples
	})
	in := clip()
	if out := e.Apply(t, in, 1); !effecttest.SameBits(out, in[golden.Start:golden.End]) {
		t.Errorf("%d samples, librosa keeps %d to %d", len(out), golden.Start, golden.End)
	}
}

// TestMargins: what remains is a part of the row, with margins that are drawn for each end.
func TestMargins(t *testing.T) {
	o := effecttest.Options{Config: `{"margin_ms_min": 20, "margin_ms_max": 200, "frame_ms": 10}`}
	e := effecttest.Must(t, New(), o)
	in := clip()
	lengths := map[int]bool{}
	for key := range 20 {
		out := e.Apply(t, in, key)
		start := slices.Index(in, out[0])
		if !effecttest.SameBits(out, in[start:start+len(out)]) {
			t.Fatalf("key %d: not a part of the row", key)
		}
		before, after := float64(9000-start)/22.05, float64(start+len(out)-21000)/22.05
		if before < 20 || before > 215 || after < 20 || after > 215 {
			t.Errorf("key %d: margins of %.0f and %.0f ms", key, before, after)
		}
		lengths[len(out)] = true
	}
	if len(lengths) < 10 {
		t.Errorf("%d different lengths", len(lengths))
	}
}

// TestKeeps: rows that are silent, or loud throughout, stay as they are.
func TestKeeps(t *testing.T) {
	e := effecttest.Must(t, New(), effecttest.Options{})
	for name, in := range map[string][]float32{"silence": make([]float32, 5000), "noise": effecttest.Noise(5000),
		"one sample": {0.5}} {
		if out := e.Apply(t, in, 1); !effecttest.SameBits(out, in) {
			t.Errorf("%s: %d samples became %d", name, len(in), len(out))
		}
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"margin_ms_min": 160}`: "config: margin_ms_min 160 is above margin_ms_max 100\nhint: ",
	})
}
