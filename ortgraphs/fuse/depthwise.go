package fuse

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Depthwise is a convolution of each channel by itself along one or two dimensions, or the gradient of its weights: x
// is in memory as [Rows, Size, Channels], y as [Rows, ResultSize, Channels]. One along one dimension has the size 1 in
// the first.
//
//	y[r, t, c] = sum over taps k: x[r, t + Start + k * Distance, c] * w[k, c]
//
// Outside of x are zeros. The gradient of x is such a sum of y, with the taps in the opposite order.
type Depthwise struct {
	// OfWeights says that it computes the gradient of w, as [Channels, Kernel], of that of y and of x.
	OfWeights                                 bool
	Rows, Channels                            int
	Size, ResultSize, Kernel, Start, Distance [2]int
	Type                                      shapes.Type
	// First is the place of the first weight in memory, Steps the distances between taps of each dimension, and between
	// channels.
	First int
	Steps [3]int
	// In are x and w, or y and x. Sum is what Tail computes from, the sum of all taps before it is rounded.
	In   [2]*Tensor
	Sum  *Tensor
	Tail []*Node

	readers [2]use // of In, among the plain nodes
	last    *Node  // of the plain nodes, with which Tail begins
}

// RoundsAsNodes is true: the plain nodes add the taps in f32, and round the sum once.
func (d *Depthwise) RoundsAsNodes() bool { return true }

func (d *Depthwise) group(nodes []*Node) [][]*Node { return [][]*Node{nodes} }

func (d *Depthwise) complete(r *Region) {
	for i, u := range d.readers {
		d.In[i] = u.node.In[u.operand].Tensor
	}
	r.Domain = d.places()
	if d.OfWeights {
		r.ColumnSums = 1
		return
	}
	d.Sum, d.Tail = d.last.In[0].Tensor, r.Nodes[slices.Index(r.Nodes, d.last):]
}

// Taps is their number.
func (d *Depthwise) Taps() int { return d.Kernel[0] * d.Kernel[1] }

// places is the shape of y.
func (d *Depthwise) places() []int {
	return []int{d.Rows, d.ResultSize[0], d.ResultSize[1], d.Channels}
}

func (d *Depthwise) ops(*Region) string {
	taps := fmt.Sprint(d.Kernel[1])
	if d.Kernel[0] > 1 {
		taps = fmt.Sprintf("%d x %d", d.Kernel[0], d.Kernel[1])
	}
	if d.OfWeights {
		return fmt.Sprintf("gradient of %s depthwise taps", taps)
	}
	text := fmt.Sprintf("sum of %s depthwise taps", taps)
	if len(d.Tail) > 1 {
		text += ", " + pointwise{}.ops(&Region{Nodes: d.Tail[1:]})
	}
	return text
}

func (d *Depthwise) count(*Ledger, *Region) (kernels int) { return 1 }

// shape is that of the result in memory.
func (d *Depthwise) shape() []int {
	if d.OfWeights {
		return []int{d.Channels, d.Taps()}
	}
	return d.places()
}

// expand returns plain nodes that compute the same from the operands of a node, set apart for the kernel.
func (d *Depthwise) expand(n *Node) []*Node {
	p := &plainDepthwise{Depthwise: d, name: n.Out[0].Name}
	if d.OfWeights {
		p.gradient(n.In[0], n.In[1])
	} else {
		p.sum(n.In[0], n.In[1])
	}
	for _, m := range p.nodes {
		m.work = d
	}
	d.last = p.nodes[len(p.nodes)-1]
	d.last.Out = n.Out
	n.Out[0].From = d.last
	return p.nodes
}

// plainDepthwise writes the plain nodes.
type plainDepthwise struct {
	*Depthwise
	name  string
	nodes []*Node
}

func (p *plainDepthwise) add(n *Node, part string, shape []int) Operand {
	p.nodes = append(p.nodes, n)
	return Operand{Tensor: n.makes(p.name+"/"+part, f32, shape)}
}

// wide is an operand in f32.
func (p *plainDepthwise) wide(i int, o Operand) Operand {
	if o.Tensor.Type == f32 {
		return o
	}
	n := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{o}}
	p.readers[i] = use{n, 0}
	return p.add(n, "wide", o.Shape())
}

// windows returns x as the taps of one number see it.
func (p *plainDepthwise) windows(i int, x Operand) func(k0, k1 int) Operand {
	x = p.wide(i, x)
	shape, pads := slices.Clone(x.Shape()), make([]int, 4)
	for a := range 2 {
		last := p.Start[a] + p.ResultSize[a] - 1 + (p.Kernel[a]-1)*p.Distance[a]
		pads[1+a] = max(0, -p.Start[a])
		shape[1+a] = pads[1+a] + max(p.Size[a], last+1)
	}
	n := &Node{Kind: Join, Op: "Pad", In: []Operand{x}, Pads: pads}
	if p.readers[i].node == nil {
		p.readers[i] = use{n, 0}
	}
	padded := p.add(n, "padded", shape)
	return func(k0, k1 int) Operand {
		o := padded
		for a, k := range [2]int{k0, k1} {
			o = cut(o, 1+a, pads[1+a]+p.Start[a]+k*p.Distance[a], 1, p.ResultSize[a])
		}
		return o
	}
}

// sum writes the sum of all taps.
func (p *plainDepthwise) sum(x, w Operand) {
	window := p.windows(0, x)
	var all Operand
	for k0 := range p.Kernel[0] {
		for k1 := range p.Kernel[1] {
			count, step := p.Channels, p.Steps[2]
			if step == 0 {
				count, step = 1, 1
			}
			weight := cut(w, 0, p.First+k0*p.Steps[0]+k1*p.Steps[1], step, count)
			if weight.Tensor.Type != f32 {
				cast := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{weight}}
				if p.readers[1].node == nil {
					p.readers[1] = use{cast, 0}
				}
				weight = p.add(cast, "weight", weight.Shape())
			}
			mul := &Node{Kind: Elementwise, Op: "Mul", In: []Operand{weight, window(k0, k1)}}
			if p.readers[1].node == nil {
				p.readers[1] = use{mul, 0}
			}
			tap := p.add(mul, "tap", p.places())
			if all.Tensor == nil {
				all = tap
			} else {
				all = p.add(&Node{Kind: Elementwise, Op: "Add", In: []Operand{all, tap}}, "sum", p.places())
			}
		}
	}
	last := &Node{Kind: Elementwise, Op: "Copy", In: []Operand{all}}
	if p.Type != f32 {
		last.Op = "Cast"
	}
	p.add(last, "result", p.places())
}

// gradient writes the sums that are the gradient of each weight.
func (p *plainDepthwise) gradient(dy, x Operand) {
	dy = p.wide(0, dy)
	window := p.windows(1, x)
	join := &Node{Kind: Join, Op: "Concat", Axes: []int{1}}
	for k0 := range p.Kernel[0] {
		for k1 := range p.Kernel[1] {
			mul := &Node{Kind: Elementwise, Op: "Mul", In: []Operand{dy, window(k0, k1)}}
			if p.readers[0].node == nil {
				p.readers[0] = use{mul, 0}
			}
			tap := p.add(mul, "tap", p.places())
			sum := &Node{Kind: Reduction, Op: "sum", In: []Operand{tap}, Axes: []int{0, 1, 2}}
			of := p.add(sum, "sum", []int{1, 1, 1, p.Channels})
			join.In = append(join.In, of.view(View{Op: Reshape, To: []int{p.Channels, 1}}))
		}
	}
	p.add(join, "result", p.shape())
}
