package cost

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
)

// reachedTaps is the part of the rate of f32 that the taps of depthwise convolutions reach: of 100 instructions, so
// many are products and sums.
const reachedTaps = 0.6

// depthwise counts a depthwise convolution, or the gradient of its weights.
func (t *tally) depthwise(r *fuse.Region, d *fuse.Depthwise, k *cudac.Kernel) {
	expected, floor := t.traffic(r.In, r.Out, 1)
	places := 1.0
	for _, n := range r.Domain {
		places *= float64(n)
	}
	taps := places * float64(d.Taps()) / (t.Card.F32 / 2)
	tail, caching := t.arithmetic(d.Tail), t.caching(k.Caches)
	t.items = append(t.items, item{
		part: Regions, what: fmt.Sprintf("%s over %v", r.Ops(), r.Domain), tensor: r.Out[0].Name, launches: 1,
		work: max(expected, taps/reachedTaps+tail/reachedArithmetic, caching), floor: max(floor, taps+tail),
	})
}
