package supervise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTrend: growth per call is found through noise, a warm-up and a level do not count, and few measurements are none.
func TestTrend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name        string
		memory      func(calls int) float64
		calls, step int
		want        float64
		ok          bool
	}{
		{"level", func(int) float64 { return 50e6 }, 3000, 20, 0, true},
		{"leak", func(n int) float64 { return 50e6 + 2000*float64(n) }, 3000, 20, 2000, true},
		{
			"leak in noise", func(n int) float64 { return 50e6 + 2000*float64(n) + 1e6*r.NormFloat64() }, 3000, 10,
			2000, true,
		},
		{"warm-up", func(n int) float64 { return 50e6 + 1e6*float64(min(n, 60)) }, 3000, 20, 0, true},
		{"few calls", func(n int) float64 { return 1e6 * float64(n) }, 190, 1, 0, false},
		{"few measurements", func(n int) float64 { return 1e6 * float64(n) }, 3000, 400, 0, false},
	} {
		var line trend
		for n := 0; n <= c.calls; n += c.step {
			line.add(n, int64(c.memory(n)))
			line.add(n, 0) // nothing was called since
		}
		if got, ok := line.slope(); ok != c.ok || math.Abs(got-c.want) > 0.1*max(c.want, 1) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}
