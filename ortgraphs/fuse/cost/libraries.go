package cost

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// tensorsOf are what a node reads.
func tensorsOf(n *fuse.Node) (list []*fuse.Tensor) {
	for _, o := range n.In {
		list = append(list, o.Tensor)
	}
	return list
}

// product counts a product that ONNX Runtime computes.
func (t *tally) product(n *fuse.Node) {
	expected, floor := t.traffic(tensorsOf(n), n.Out, 1)
	t.multiply(formOf(n), n, 1, expected, floor, t.spilledBy(tensorsOf(n), n.Out))
}

// products counts those of a region: one, or many of one launch.
func (t *tally) products(r *fuse.Region, w *fuse.Products) {
	f := formOf(r.Nodes[0])
	if !w.Planned {
		f.count *= len(r.Nodes)
	}
	expected, floor := t.traffic(r.In, r.Out, 1)
	t.multiply(f, r.Nodes[0], 1, expected, floor, t.spilledBy(r.In, r.Out))
}

func (t *tally) multiply(f form, n *fuse.Node, launches int, moving, floor float64, c cause) {
	computing, used := f.seconds(t.Settings)
	i := item{
		part: Products, what: "product " + f.String(), tensor: n.Out[0].Name, launches: launches,
		work: max(moving, computing), floor: max(floor, f.flops()/t.peak(f.element)), cause: c,
	}
	if i.why == "" && computing > moving {
		i.cause = t.idle(f, used)
	}
	t.items = append(t.items, i)
}

// idle says why a product is slow, if it is. A gradient of weights, which has long sums, has few results however many
// rows there are.
func (t *tally) idle(f form, used float64) cause {
	narrow, widest, gradient := min(f.rows, f.columns), tiles[0].side, f.inner > 2*max(f.rows, f.columns)
	switch {
	case !f.aligned() && t.peak(f.element) != t.Card.F32:
		return cause{"a side that is no multiple of 8, so operands are loaded slowly", Aligned}
	case used < wellUsed && narrow < widest && (gradient || f.columns < widest):
		return cause{
			fmt.Sprintf("products with a side below %d leave a part of each multiprocessor idle", widest), Wider,
		}
	case used < wellUsed && gradient:
		return cause{"gradients of weights with few results leave multiprocessors idle", Nothing}
	case used < wellUsed:
		return cause{"products with few results leave multiprocessors idle", MoreRows}
	case t.inTF32(f.element) && f.apart():
		return t.apart("product")
	}
	return cause{}
}

// apart is the cause that a library reads the terms of sums in TF32 from places that are apart in memory.
func (t *tally) apart(what string) cause {
	c := cause{fmt.Sprintf("in TF32, the terms of a %s's sums are apart in memory", what), Nothing}
	if t.BF16 {
		c.mend = UseBF16
	}
	return c
}

// wellUsed is the part of the multiprocessors that is busy with what is needed, from which on that is not why something
// is slow.
const wellUsed = 0.8

// convolution counts one that a library computes.
func (t *tally) convolution(r *fuse.Region, c *fuse.Convolution) {
	expected, floor := t.traffic(r.In, r.Out, 1)
	f := convolved(c)
	computing, used := f.seconds(t.Settings)
	i := item{
		part: Convolutions, what: fmt.Sprintf("%s of %d channels to %d", r.Ops(), c.Channels, c.Results),
		tensor: r.Out[0].Name, launches: 1, work: max(expected, computing), floor: max(floor, needed(c)/t.peak(c.Type)),
	}
	least := min(c.Channels, c.Results) / c.Groups
	switch {
	case expected > computing:
	case c.Groups > 1 && least < groupChannels:
		i.what += fmt.Sprintf(" in %d groups", c.Groups)
		i.cause = cause{fmt.Sprintf("cuDNN fills up groups of %d channels to %d", least, groupChannels), Wider}
	case least < tiles[0].side:
		i.cause = cause{fmt.Sprintf("convolutions of less than %d channels leave a part of each multiprocessor idle",
			tiles[0].side), Wider}
	case used < wellUsed && c.Pass == fuse.OfWeights:
		i.cause = cause{"gradients of weights with few results leave multiprocessors idle", Nothing}
	case used < wellUsed:
		i.cause = cause{"convolutions with few results leave multiprocessors idle", MoreRows}
	case t.inTF32(f.element) && f.apart():
		i.cause = t.apart("convolution")
	}
	t.items = append(t.items, i)
}

// narrowGradient counts the gradient of the weights of a convolution of few channels, which a kernel computes with both
// filled up.
func (t *tally) narrowGradient(r *fuse.Region, g *fuse.NarrowGradient) {
	expected, floor := t.traffic(r.In, r.Out, 1)
	fill := func(n int) float64 { return float64(ceil(n, fuse.NarrowStep)*fuse.NarrowStep) / float64(n) }
	filled := needed(&g.Convolution) * fill(g.Channels) * fill(g.Results)
	t.items = append(t.items, item{
		part: Convolutions, what: fmt.Sprintf("%s of %d channels to %d", r.Ops(), g.Channels, g.Results),
		tensor: r.Out[0].Name, launches: 1, work: max(expected, filled/t.peak(g.Type)/reachedNarrow),
		floor: max(floor, needed(&g.Convolution)/t.peak(g.Type)),
	})
}

// reachedNarrow is the part of the rate of bf16 that the gradients of few channels reach: 53 us on an H200 for 32
// channels to 32, 3 x 3 taps, at 16 x 448 x 80 positions.
const reachedNarrow = 0.2

// How kernels of attention multiply. Those of mma.sync reach half of the rate on cards that have wgmma, and so do the
// gradients in one block, whose sums fill the registers.
const (
	reachedSync     = 0.6
	hopper          = 90
	blockColumns    = 64
	blockQueries    = 560
	leastBusyBlocks = 2.0 / 3
)

// attention counts a kernel of attention, or those of its gradient. Products and the arithmetic of scores share the
// time.
func (t *tally) attention(r *fuse.Region, w *fuse.Attention) {
	expected, floor := t.traffic(r.In, r.Out, share(r))
	shape := w.Query.Shape()
	columns := shape[len(shape)-1]
	if w.Query.Turned {
		columns = shape[len(shape)-2]
	}
	scores := w.Product.Elements()
	one := 2 * float64(scores) * float64(columns) / t.peak(w.Query.Tensor.Type)
	arithmetic := t.arithmetic(r.Nodes)
	i := item{part: Attention, what: fmt.Sprintf("%s over %v", r.Ops(), r.Domain), tensor: r.Out[0].Name, launches: 1}
	reached, products, needs, times := reachedBF16, 2.0, 2.0, 1.0
	if t.Card.Capability == hopper && (columns != blockColumns || w.Backward != nil) {
		reached *= reachedSync
	}
	if w.Backward != nil {
		products, needs = 5, 5
		if !t.oneBlock(w, columns) {
			products, times, i.launches = 7, 2, 2
			i.cause = cause{"its gradients are computed by two kernels, which repeat products", Nothing}
		}
	}
	i.work = max(expected, products*one/reached+times*arithmetic/reachedArithmetic)
	i.floor = max(floor, needs*one+arithmetic)
	t.items = append(t.items, i)
}

// oneBlock reports whether one block computes the gradients of a head: see docs/compiler.md.
func (t *tally) oneBlock(w *fuse.Attention, columns int) bool {
	rank := len(w.Product.Shape)
	heads, busy := 1, 0.0
	for _, d := range w.Product.Shape[:rank-2] {
		heads *= d
	}
	busy = float64(heads) / float64(ceil(heads, t.Card.Multiprocessors)*t.Card.Multiprocessors)
	return t.Card.Capability == hopper && columns == blockColumns && w.Product.Shape[rank-2] <= blockQueries &&
		busy >= leastBusyBlocks
}
