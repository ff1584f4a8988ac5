package cost_test

import (
	"fmt"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
)

// depthwise is a depthwise convolution of 16 rows of 448 positions with 512 channels.
func depthwise(taps int64) *graph {
	const positions = 448
	g := &graph{}
	g.input("x", f32, 16, positions, 512)
	g.input("w", f32, taps, 512)
	g.node("Pad", "padded", "x", g.ints("pads", 0, taps/2, 0, 0, taps/2, 0))
	sum := ""
	for k := range taps {
		one := func(name string) string { return fmt.Sprintf("%s%d", name, k) }
		from, to := g.ints(one("from"), k), g.ints(one("to"), k+1)
		g.node("Slice", one("weight"), "w", from, to, g.ints(one("rows"), 0))
		g.node("Slice", one("window"), "padded", from, g.ints(one("end"), k+positions), g.ints(one("axis"), 1))
		g.node("Mul", one("tap"), one("weight"), one("window"))
		if sum == "" {
			sum = one("tap")
			continue
		}
		g.node("Add", one("sum"), sum, one("tap"))
		sum = one("sum")
	}
	g.node("Sigmoid", "y", sum)
	g.output("y", f32, 16, positions, 512)
	return g
}

// TestDepthwise: x is read and y is written once, 14,680,064 bytes each. With 31 taps that takes longest, with 63 the
// products and sums do: 33.5 T of them a second, of which 0.6 are reached, and a sigmoid takes 16.
func TestDepthwise(t *testing.T) {
	const elements, rate = 16 * 448 * 512, 67e12 / 2
	for _, taps := range []float64{31, 63} {
		p := depthwise(int64(taps)).plan(t).Predict(h200(t), nil)
		bytes := 1e3 * (2*elements + 512*taps) * 4 / 4.8e12
		sums, tail := 1e3*elements*taps/rate, 1e3*elements*17/rate // with the copy that begins it
		near(t, "floor", p.FloorMS, max(bytes, sums+tail))
		near(t, "regions", part(p, cost.Regions).MS, max(bytes/0.75, sums/0.6+tail/0.8))
		if p.Launches != 1 {
			t.Errorf("%d taps: %d launches", int(taps), p.Launches)
		}
	}
}
