package fuse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// alignProducts fills up products with zeros where a side is no multiple of 16 bytes, as 513 frequencies or 895
// relative positions: a library loads rows that do not begin at such multiples element by element, and needs several
// times as long in bf16, and up to three times in TF32. A kernel that computes an operand writes the zeros with it.
// What is beyond the sides of a result is not read. Products in f32 without TF32, which the graph does not tell apart,
// gain nothing.
func alignProducts(g *Graph) {
	a := &aligning{
		lowering: lowering{graph: &Graph{}}, least: cmp.Or(g.LeastSaved, leastSaved), uses: g.uses(),
		outputs: g.outputs(), filled: map[string]*Tensor{},
	}
	for _, n := range g.Nodes {
		if sides, ok := a.sides(n); ok {
			a.align(n, sides)
		} else {
			a.graph.Nodes = append(a.graph.Nodes, n)
		}
	}
	g.Nodes = a.graph.Nodes
}

type aligning struct {
	lowering
	least   float64 // seconds that a product has to save
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	filled  map[string]*Tensor // operands with zeros, by tensor and the sizes that differ
}

// sides are those of a product.
type sides struct{ rows, inner, columns int }

// What decides whether filling up gains anything, on an H200: a product whose rows are not aligned takes so much longer
// for each operation, in bf16 and in TF32, or in bf16 for each element of its operands and its result. Copies of
// operands move 3e12 bytes a second, each with a launch.
const (
	unalignedSeconds = 5e-15
	elementSeconds   = 1.2e-12
	copiedSeconds    = 1 / 3e12
	launchSeconds    = 3e-6
	leastSaved       = 1e-6 // about what a kernel more takes in a CUDA graph
)

// sides returns those that a product is to be filled up to, if that gains time.
func (a *aligning) sides(n *Node) (to sides, ok bool) {
	if !n.is(Product) || n.adds() || !isFloat(n.Out[0].Type) {
		return to, false
	}
	by := 16 / int(shapes.ElementSize(n.Out[0].Type))
	aligned := func(size int) int { return (size + by - 1) / by * by }
	y := n.Out[0].Shape
	rank := len(y)
	now := sides{y[rank-2], n.inner(), y[rank-1]}
	to = now
	to.columns = aligned(now.columns)
	if !n.Transposed[0] || n.Transposed[1] { // terms are neighbours in memory
		to.inner = aligned(now.inner)
	}
	if n.Transposed[0] {
		to.rows = aligned(now.rows)
	}
	vector := min(now.rows, now.inner, now.columns) == 1 // for which a library has kernels of its own
	inOrder := n.In[0].Reshaped() && n.In[1].Reshaped()  // the keys of fillUp leave views out
	if to == now || vector || !inOrder || len(n.In[0].Shape()) != rank || slices.Contains(y, 0) {
		return to, false
	}
	elements := n.Out[0].Elements()
	saved := 2 * float64(elements) * float64(now.inner) * unalignedSeconds
	if n.Out[0].Type != f32 {
		elements += product(n.In[0].Shape()) + product(n.In[1].Shape())
		saved = max(saved, float64(elements)*elementSeconds)
	}
	return to, saved-a.copies(n, now, to) > a.least
}

// copies are the seconds for what no kernel does in any case.
func (a *aligning) copies(n *Node, now, to sides) (seconds float64) {
	for i, o := range n.In {
		if slices.Equal(filledShape(n, i, to), o.Shape()) {
			continue
		}
		bytes := float64(product(o.Shape()) * int(shapes.ElementSize(o.Tensor.Type)))
		seconds += bytes * copiedSeconds
		if from := o.Tensor.From; from == nil || !from.fusible() {
			seconds += bytes*copiedSeconds + launchSeconds
		}
	}
	if t := n.Out[0]; (to.rows != now.rows || to.columns != now.columns) && (a.outputs[t] || a.copied(t)) {
		seconds += 2*float64(t.Bytes())*copiedSeconds + launchSeconds
	}
	return seconds
}

// copied reports whether a reader of a tensor cannot read a part of it.
func (a *aligning) copied(t *Tensor) bool {
	return slices.ContainsFunc(a.uses[t], func(u use) bool { return !u.node.fusible() })
}

// filledShape is the shape of an operand of a product with such sides.
func filledShape(n *Node, operand int, to sides) []int {
	shape := slices.Clone(n.In[operand].Shape())
	last := [2]int{to.rows, to.inner}
	if operand == 1 {
		last = [2]int{to.inner, to.columns}
	}
	if n.Transposed[operand] {
		last[0], last[1] = last[1], last[0]
	}
	copy(shape[len(shape)-2:], last[:])
	return shape
}

// align fills up the operands of a product, and lets the readers of its result read a part of it.
func (a *aligning) align(n *Node, to sides) {
	for i := range n.In {
		n.In[i] = a.fillUp(n.In[i], filledShape(n, i, to))
	}
	a.graph.Nodes = append(a.graph.Nodes, n)
	t := n.Out[0]
	rank := len(t.Shape)
	shape := append(slices.Clone(t.Shape[:rank-2]), to.rows, to.columns)
	if slices.Equal(shape, t.Shape) {
		return
	}
	whole := n.makes(t.Name+"/aligned", t.Type, shape)
	part := cut(cut(Operand{Tensor: whole}, rank-2, 0, 1, t.Shape[rank-2]), rank-1, 0, 1, t.Shape[rank-1])
	if a.outputs[t] || a.copied(t) {
		t.From = &Node{Kind: Elementwise, Op: "Copy", In: []Operand{part}, Out: []*Tensor{t}}
		a.graph.Nodes = append(a.graph.Nodes, t.From)
		return
	}
	show(t, part, 0, a.uses)
}

// fillUp returns an operand with zeros after its last dimensions.
func (a *aligning) fillUp(o Operand, shape []int) Operand {
	if slices.Equal(o.Shape(), shape) {
		return o
	}
	// layoutProducts leaves no views but reshapes, so the tensor and the last sizes say what an operand is.
	was, rank := o.Shape(), len(shape)
	key := fmt.Sprintf("%p %v %v", o.Tensor, was[rank-1:], shape[rank-1:])
	if was[rank-2] != shape[rank-2] {
		key = fmt.Sprintf("%p %v %v", o.Tensor, was[rank-2:], shape[rank-2:])
	}
	if t := a.filled[key]; t != nil {
		return Operand{Tensor: t}.view(View{Op: Reshape, To: shape})
	}
	name, kind := o.Tensor.Name, o.Tensor.Type
	if kind != f32 { // ONNX Runtime's Pad has no other
		o = a.elementwise("Cast", name+"/wide", f32, was, o)
	}
	y := a.add(&Node{Kind: Join, Op: "Pad", In: []Operand{o}, Pads: make([]int, rank)}, name+"/padded", f32, shape)
	if kind != f32 {
		y = a.elementwise("Cast", name+"/filled", kind, shape, y)
	}
	a.filled[key] = y.Tensor
	return y
}
