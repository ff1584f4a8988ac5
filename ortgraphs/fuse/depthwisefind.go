package fuse

import "slices"

// Limits of the depthwise convolutions that have a kernel of their own. With fewer taps or channels, a region computes
// them as fast as any other nodes.
const (
	leastTaps, maxTaps = 3, 128
	leastChannels      = 8
)

// findDepthwise finds depthwise convolutions, which are exported as sums of shifted products, and their gradients. In
// place of each is a node that has the channels as its innermost dimension.
func findDepthwise(g *Graph) {
	f := &depthwiseFinder{
		uses: g.uses(), outputs: g.outputs(), before: map[*Node][]*Node{}, sums: map[*Tensor]*tapSum{},
		inner: map[*Tensor]bool{},
	}
	for _, n := range g.Nodes {
		if s := f.sum(n); s != nil {
			f.sums[n.Out[0]] = s
		}
	}
	for _, n := range g.Nodes {
		if t := n.Out[0]; n.Op == "Add" && f.sums[t] != nil && !f.inner[t] {
			f.rewriteSum(n, f.sums[t])
		}
	}
	f.gradients(g)
	if len(f.before) == 0 {
		return
	}
	g.insert(f.before)
	f.joined(g)
	g.Nodes = reachable(g)
}

type depthwiseFinder struct {
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	before  map[*Node][]*Node // new nodes, by the one that follows them
	sums    map[*Tensor]*tapSum
	inner   map[*Tensor]bool // sums that are a part of a larger one
	made    []*Tensor        // gradients of weights
}

// tapSum is a tensor that is a sum of products of x, shifted, and weights.
type tapSum struct {
	x     Operand
	taps  []depthwiseTap
	whole bool    // no product has elements beyond the ends of the tensor
	from  *Tensor // of the last Add, or nil
}

// depthwiseTap is a product of a sum: of x[i + shift] at the place i.
type depthwiseTap struct {
	shift  []int
	weight Operand
	sum    *Node // which sums the product, for a gradient of weights
}

// sum returns what a node sums, or nil.
func (f *depthwiseFinder) sum(n *Node) *tapSum {
	switch {
	case n.work != nil || n.Kind > Join || !isFloat(n.Out[0].Type):
	case n.Op == "Mul":
		return f.product(n)
	case n.Op == "Add":
		a, b := f.part(n, 0), f.part(n, 1)
		if a == nil || b == nil || a.x.Tensor != b.x.Tensor || !sameViews(a.x.Views, b.x.Views) ||
			a.taps[0].weight.Tensor != b.taps[0].weight.Tensor || len(a.taps)+len(b.taps) > maxTaps {
			return nil
		}
		f.inner[a.from], f.inner[b.from] = true, true
		return &tapSum{x: a.x, taps: slices.Concat(a.taps, b.taps), whole: a.whole && b.whole, from: n.Out[0]}
	case n.Op == "Pad" && n.Fill == 0:
		if s := f.part(n, 0); s != nil && s.whole {
			padded := &tapSum{x: s.x, whole: true, from: s.from}
			for _, t := range s.taps {
				padded.taps = append(padded.taps, depthwiseTap{shift: minus(t.shift, n.Pads), weight: t.weight})
			}
			return padded
		}
	case n.Op == "Cast":
		return f.part(n, 0)
	}
	return nil
}

// part returns what an operand of a node sums, if nothing else reads it.
func (f *depthwiseFinder) part(n *Node, i int) *tapSum {
	o := n.In[i]
	t := o.Tensor
	if !o.Plain() || f.outputs[t] || len(f.uses[t]) != 1 || n.Op == "Add" && !slices.Equal(t.Shape, n.Out[0].Shape) {
		return nil
	}
	return f.sums[t]
}

// product returns the tap that a product with weights is.
func (f *depthwiseFinder) product(n *Node) *tapSum {
	shape := n.Out[0].Shape
	for i, w := range n.In {
		o := n.In[1-i]
		if _, ok := channelOf(w.Shape(), len(shape)); !ok || !slices.Equal(o.Shape(), shape) {
			continue
		}
		x, shift, sliced := unshifted(o)
		return &tapSum{x: x, taps: []depthwiseTap{{shift: shift, weight: w}}, whole: !sliced}
	}
	return nil
}

// channelOf returns the only dimension of so many that an operand of this shape has, or -1 if it is one number. It
// returns false if there are several.
func channelOf(shape []int, rank int) (channel int, ok bool) {
	channel = -1
	for i, d := range shape {
		if d == 1 {
			continue
		}
		if channel >= 0 {
			return 0, false
		}
		channel = i + rank - len(shape)
	}
	return channel, true
}

// unshifted returns the tensor of which an operand is a part, with zeros around it, and where the part begins.
func unshifted(o Operand) (x Operand, shift []int, sliced bool) {
	shift = make([]int, len(o.Shape()))
	for last := len(o.Views) - 1; last >= 0 && o.Views[last].Op == Slice && o.Views[last].Step == 1; last-- {
		v := o.Views[last]
		shift[v.Axis] += v.Start
		o, sliced = Operand{o.Tensor, o.Views[:last]}, true
	}
	for o.Plain() && o.Tensor.From != nil {
		n := o.Tensor.From
		switch {
		case n.is(Join) && n.Op == "Pad" && n.Fill == 0:
			shift = minus(shift, n.Pads)
		case n.is(Elementwise) && n.Op == "Cast" && isFloat(n.In[0].Tensor.Type) && n.Out[0].Type == f32:
		default:
			return o, shift, sliced
		}
		o = n.In[0]
	}
	return o, shift, sliced
}

func minus(a, b []int) []int {
	out := slices.Clone(a)
	for i, x := range b {
		out[i] -= x
	}
	return out
}

// grid finds the sizes of a convolution whose taps have these shifts, and where each tap has its place.
func (d *Depthwise) grid(taps []depthwiseTap) (axes, order []int, ok bool) {
	rank, along := len(taps[0].shift), map[int][]int{}
	for a := range rank {
		for _, t := range taps {
			along[a] = append(along[a], t.shift[a])
		}
		slices.Sort(along[a])
		if along[a] = slices.Compact(along[a]); len(along[a]) > 1 {
			axes = append(axes, a)
		} else if along[a][0] != 0 {
			return nil, nil, false
		}
	}
	if len(axes) < 1 || len(axes) > 2 {
		return nil, nil, false
	}
	d.Kernel, d.Start, d.Distance = [2]int{1, 1}, [2]int{}, [2]int{1, 1}
	for i, a := range axes {
		at, list := 2-len(axes)+i, along[a]
		d.Kernel[at], d.Start[at], d.Distance[at] = len(list), list[0], list[1]-list[0]
		for j, s := range list {
			if s != list[0]+j*d.Distance[at] {
				return nil, nil, false
			}
		}
	}
	order = make([]int, d.Taps())
	for i := range order {
		order[i] = -1
	}
	if len(taps) != len(order) || len(taps) < leastTaps {
		return nil, nil, false
	}
	for i, t := range taps {
		place := 0
		for j, a := range axes {
			at := 2 - len(axes) + j
			place = place*d.Kernel[at] + (t.shift[a]-d.Start[at])/d.Distance[at]
		}
		if order[place] >= 0 {
			return nil, nil, false
		}
		order[place] = i
	}
	return axes, order, true
}

// layout sets the sizes of x and of the result, whose shapes are given, and returns the order of dimensions in which
// the channels are the last.
func (d *Depthwise) layout(x, y []int, axes []int, channel int) (perm []int, ok bool) {
	d.Rows, d.Channels, d.Size, d.ResultSize = 1, x[channel], [2]int{1, 1}, [2]int{1, 1}
	for i, n := range x {
		if i == channel || slices.Contains(axes, i) {
			continue
		}
		d.Rows *= n
		perm = append(perm, i)
		if n != y[i] {
			return nil, false
		}
	}
	for i, a := range axes {
		at := 2 - len(axes) + i
		d.Size[at], d.ResultSize[at] = x[a], y[a]
	}
	ok = !slices.Contains(axes, channel) && x[channel] == y[channel] && d.Channels >= leastChannels &&
		product(x)*product(y) > 0
	return append(append(perm, axes...), channel), ok
}

// laid shows an operand with the dimensions in another order, and those before the axes as one.
func laid(o Operand, perm []int, size [2]int) Operand {
	o = o.moved(perm)
	channels := o.Shape()[len(perm)-1]
	rows := product(o.Shape()) / (size[0] * size[1] * channels)
	return o.view(View{Op: Reshape, To: []int{rows, size[0], size[1], channels}})
}

// rewriteSum puts a node in place of a sum, if it is a depthwise convolution. It leaves out what no reader needs.
func (f *depthwiseFinder) rewriteSum(n *Node, s *tapSum) {
	t := n.Out[0]
	d := &Depthwise{Type: t.Type}
	axes, order, ok := d.grid(s.taps)
	if !ok || f.outputs[t] {
		return
	}
	rank := len(t.Shape)
	channel, _ := channelOf(s.taps[0].weight.Shape(), rank)
	if channel < 0 { // one filter for all: its channels may be any other dimension
		if channel = axes[0] - 1; channel < 1 {
			return
		}
	}
	if !d.weights(s.taps, order, channel) {
		return
	}
	shape := slices.Clone(t.Shape)
	cuts := f.cuts(t, axes)
	for _, v := range cuts {
		d.Start[2-len(axes)+slices.Index(axes, v.Axis)] += v.Start
		shape[v.Axis] = v.To[v.Axis]
	}
	perm, ok := d.layout(s.x.Shape(), shape, axes, channel)
	if !ok {
		return
	}
	w := Operand{Tensor: s.taps[0].weight.Tensor}
	w = w.view(View{Op: Reshape, To: []int{w.Tensor.Elements()}})
	y := f.add(n, d, t.Name, laid(s.x, perm, d.Size), w)
	y = y.view(View{Op: Reshape, To: permuted(shape, perm)}).moved(inverse(perm))
	show(t, y, len(cuts), f.uses)
	for _, next := range f.sums { // another convolution reads it, with nothing between the two
		if next.x.Tensor == t && len(cuts) == 0 {
			next.x = y.through(next.x.Views)
		}
	}
}

// cuts returns the slices along the axes that all readers of a tensor see first.
func (f *depthwiseFinder) cuts(t *Tensor, axes []int) (views []View) {
	for i := 0; len(f.uses[t]) > 0; i++ {
		first := f.uses[t][0].viewsOf()
		if len(first) <= i || first[i].Op != Slice || first[i].Step != 1 || !slices.Contains(axes, first[i].Axis) {
			return views
		}
		for _, u := range f.uses[t] {
			if all := u.viewsOf(); len(all) <= i || !sameViews(all[i:i+1], first[i:i+1]) {
				return views
			}
		}
		views = append(views, first[i])
	}
	return views
}

func (u use) viewsOf() []View { return u.node.In[u.operand].Views }

// weights finds where the weights are in memory.
func (d *Depthwise) weights(taps []depthwiseTap, order []int, channel int) bool {
	rank := len(taps[0].shift)
	place := func(k, c int) (int, bool) {
		o := taps[order[k]].weight
		own, ok := channelOf(o.Shape(), rank)
		if !ok || o.Tensor != taps[0].weight.Tensor || own >= 0 && own != channel {
			return 0, false
		}
		index := make([]int, len(o.Shape()))
		if own >= 0 {
			index[own-rank+len(index)] = c
		}
		return o.placeOf(index), true
	}
	channels := product(taps[0].weight.Shape())
	d.First, _ = place(0, 0)
	for i, k := range []int{d.Kernel[1], 1} {
		d.Steps[i] = 0
		if d.Kernel[i] > 1 {
			next, _ := place(k, 0)
			d.Steps[i] = next - d.First
		}
	}
	d.Steps[2] = 0
	if channels > 1 {
		next, _ := place(0, 1)
		d.Steps[2] = next - d.First
	}
	for k := range order {
		for c := range channels {
			at, ok := place(k, c)
			if !ok || at != d.First+k/d.Kernel[1]*d.Steps[0]+k%d.Kernel[1]*d.Steps[1]+c*d.Steps[2] ||
				product(taps[order[k]].weight.Shape()) != channels {
				return false
			}
		}
	}
	return d.Steps[2] >= 0
}

// add adds a node before another one, and returns its result.
func (f *depthwiseFinder) add(before *Node, d *Depthwise, name string, in ...Operand) Operand {
	n := &Node{Kind: Convolved, Op: "Depthwise", In: in, Convolution: d}
	out := n.makes(name, d.Type, d.shape())
	f.before[before] = append(f.before[before], n)
	for i, o := range in {
		f.uses[o.Tensor] = append(f.uses[o.Tensor], use{n, i})
	}
	return Operand{Tensor: out}
}
