package fuse

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// shareWindows computes both gradients of a convolution from windows of the gradient of its result. A convolution is a
// product of windows of its input with the weights, y = Windows(x) W, and its gradients are
//
//	dW = Windows(x)' dy    dx = the sum of the parts of dy W', each moved to its place
//
// so the windows of x, which are as many times larger than x as the kernel has taps, stay in memory from one pass to
// the other. The same gradients are, with the taps in reverse order,
//
//	dW = x' Windows(dy)    dx = Windows(dy) W'
//
// The products have the same number of operations. The bytes are about the same if y has no more channels than x:
// windows are written once and read twice, in place of parts that are written and read once, and windows that are read
// once. A sum over the taps is rounded once, and not after each tap.
func shareWindows(g *Graph) {
	s := &windowSharing{uses: g.uses(), outputs: g.outputs(), added: map[*Node][]*Node{}}
	for _, n := range g.Nodes {
		if c := s.convolution(n); c != nil {
			s.rewrite(c)
		}
	}
	g.insert(s.added)
	g.Nodes = reachable(g)
}

type windowSharing struct {
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	added   map[*Node][]*Node // before nodes of the graph
}

// convolution is what a graph computes for the gradients of one. The channels are the last dimension of x and dy.
type convolution struct {
	Windows
	x, dy          Operand     // dy has two dimensions
	positions      int         // of dy, along the axis of the windows
	before         int         // zeros around dy, so that the windows of all positions of x begin in it
	weight, parted *Node       // the products Windows(x)' dy, transposed, and dy W'
	dx             *Tensor     // the sum of the parts
	seen           []View      // what each part is a slice of; nil if that is all of dy W'
	phase          int         // where the parts of the sum begin, less a multiple of the stride
	kind           shapes.Type // of the sum
}

// convolution finds the gradients of a convolution whose windows a node joins; nil if there are none.
func (s *windowSharing) convolution(n *Node) *convolution {
	x, w, ok := windowsOf(n)
	t := n.Out[0]
	last := len(t.Shape) - 1
	if !ok || w.Step != 1 || w.Distance < 1 || n.Axes[0] != last || s.outputs[t] || !isFloat(t.Type) {
		return nil
	}
	c := &convolution{Windows: w, x: x, positions: t.Shape[w.Axis]}
	for _, u := range s.uses[t] {
		n := u.node
		if n.Kind != Product || len(n.In[0].Shape()) != 2 || len(n.In[1].Shape()) != 2 {
			return nil
		}
		o, transposed := n.matrix(u.operand)
		other, otherTransposed := n.matrix(1 - u.operand)
		switch {
		case transposed || !o.Reshaped() || o.Shape()[1] != t.Shape[last]:
			return nil
		case u.operand == 0: // the convolution
		case otherTransposed && c.weight == nil && !n.adds():
			c.weight, c.dy = n, other
		default:
			return nil
		}
	}
	if c.weight == nil || s.outputs[c.weight.Out[0]] || c.dy.Shape()[1] > x.Shape()[last] || !s.findParts(c) {
		return nil
	}
	c.before = c.Start + c.reach()
	return c
}

// reach is the distance between the first and the last tap.
func (c *convolution) reach() int { return (c.Parts - 1) * c.Distance }

// matrix returns an operand of a product without a transpose, and whether the product takes it transposed.
func (n *Node) matrix(i int) (o Operand, transposed bool) {
	o, transposed = n.In[i], n.Transposed[i]
	if last := len(o.Views) - 1; last >= 0 && o.Views[last].Op == Transpose {
		return Operand{o.Tensor, o.Views[:last]}, !transposed
	}
	return o, transposed
}

// findParts finds the product of dy with the weights, and the sum of its parts.
func (s *windowSharing) findParts(c *convolution) bool {
	for _, u := range s.uses[c.dy.Tensor] {
		n := u.node
		if n.Kind != Product || n.adds() || u.operand != 0 || n.Transposed[0] ||
			!sameViews(n.In[0].Views, c.dy.Views) ||
			n.Out[0].Shape[len(n.Out[0].Shape)-1] != c.weight.Out[0].Shape[1] || s.outputs[n.Out[0]] ||
			len(s.uses[n.Out[0]]) != c.Parts {
			continue
		}
		c.parted, c.kind = n, n.Out[0].Type
		if c.dx = s.sum(c); c.dx != nil {
			return true
		}
	}
	return false
}

// sum returns the sum of all parts of the product, each in its place; nil if there is none.
func (s *windowSharing) sum(c *convolution) *Tensor {
	for t := c.parted.Out[0]; ; {
		n := s.uses[t][0].node
		if n.Op != "Cast" && n.Op != "Pad" && n.Op != "Add" {
			return nil
		}
		t = n.Out[0]
		parts, ok := s.parts(c, Operand{Tensor: t})
		slices.Sort(parts)
		switch {
		case ok && len(parts) == c.Parts:
			if len(slices.Compact(parts)) < c.Parts || t.Type != c.kind {
				return nil
			}
			return t
		case !s.only(t):
			return nil
		}
	}
}

// only reports whether just one node reads a tensor.
func (s *windowSharing) only(t *Tensor) bool { return len(s.uses[t]) == 1 && !s.outputs[t] }

// parts returns which parts of the product an operand sums.
func (s *windowSharing) parts(c *convolution, o Operand) ([]int, bool) {
	n := o.Tensor.From
	if !slices.Equal(o.Shape(), c.x.Shape()) || n == nil {
		return nil, false
	}
	if n.Op != "Add" || o.Tensor == c.parted.Out[0] {
		part, ok := s.part(c, o)
		return []int{part}, ok
	}
	var all []int
	for _, o := range n.In {
		if !o.Plain() || o.Tensor.From == nil || !s.only(o.Tensor) {
			return nil, false
		}
		some, ok := s.parts(c, o)
		if !ok {
			return nil, false
		}
		all = append(all, some...)
	}
	return all, true
}

// part returns which part of the product an operand has in its place, with zeros around it.
func (s *windowSharing) part(c *convolution, o Operand) (int, bool) {
	rank := len(o.Shape())
	pads := make([]int, rank)
	for o.Tensor != c.parted.Out[0] {
		n := o.Tensor.From
		if n == nil || !o.Plain() || !s.only(o.Tensor) || !isFloat(o.Tensor.Type) {
			return 0, false
		}
		switch {
		case n.Kind == Elementwise && n.Op == "Cast":
		case n.Kind == Join && n.Op == "Pad" && n.Fill == 0:
			for i, p := range n.Pads {
				pads[i] += p
			}
		default:
			return 0, false
		}
		o = n.In[0]
	}
	columns, v, ok := sliced(o)
	shape := slices.Clone(c.x.Shape())
	channels := shape[rank-1]
	if c.seen != nil && !sameViews(columns.Views, c.seen) || c.seen == nil && !columns.Reshaped() {
		return 0, false
	}
	if !ok || v.Axis != rank-1 || v.Step != 1 || v.Start%channels != 0 {
		return 0, false
	}
	part := v.Start / channels
	before, at := make([]int, rank), c.Start+part*c.Distance
	shape[c.Axis], before[c.Axis] = c.positions, at/c.Step
	return part, at%c.Step == c.phase && slices.Equal(o.Shape(), shape) && slices.Equal(pads, before)
}

// trim leaves out the zeros around x, if the readers of dx do not need those positions. What is between them is
// computed again from what the forward pass has written, after dy.
func (s *windowSharing) trim(c *convolution, l *lowering) {
	var casts []*Node
	o := c.x
	for o.Plain() && o.Tensor.From != nil && o.Tensor.From.Kind == Elementwise && o.Tensor.From.Op == "Cast" {
		casts = append(casts, o.Tensor.From)
		o = o.Tensor.From.In[0]
	}
	pad := o.Tensor.From
	if !o.Plain() || pad == nil || pad.Kind != Join || pad.Op != "Pad" || pad.Fill != 0 {
		return
	}
	inner := pad.In[0]
	whole := slices.Clone(inner.Shape())
	size, first := whole[c.Axis], pad.Pads[c.Axis]
	whole[c.Axis] = c.x.Shape()[c.Axis]
	before := c.before - first
	if !slices.Equal(whole, c.x.Shape()) || before < 0 || size+c.reach() < before+c.positions ||
		!s.readsOnly(c.dx, c.Axis, first, size) {
		return
	}
	for _, u := range s.uses[c.dx] {
		o := &u.node.In[u.operand]
		o.Views = o.Views[1:]
	}
	again := func(n *Node, in []Operand, shape []int) *Tensor {
		m, t := *n, n.Out[0]
		m.In, m.after = in, c.dy.Tensor.From
		return l.add(&m, t.Name+"/late", t.Type, shape).Tensor
	}
	if n := inner.Tensor.From; n != nil && n.is(Elementwise) {
		inner.Tensor = again(n, slices.Clone(n.In), n.Out[0].Shape)
	}
	for _, n := range slices.Backward(casts) {
		inner = Operand{Tensor: again(n, []Operand{inner}, inner.Shape())}
	}
	c.x, c.before = inner, before
}

// readsOnly reports whether all readers of a tensor take the same part of it first.
func (s *windowSharing) readsOnly(t *Tensor, axis, start, size int) bool {
	return !s.outputs[t] && !slices.ContainsFunc(s.uses[t], func(u use) bool {
		views := u.node.In[u.operand].Views
		return len(views) == 0 || views[0].Op != Slice || views[0].Axis != axis || views[0].Start != start ||
			views[0].Step != 1 || views[0].To[axis] != size
	})
}

// rewrite computes the gradients of a convolution from windows of dy.
func (s *windowSharing) rewrite(c *convolution) {
	l := &lowering{graph: &Graph{}}
	s.trim(c, l)
	shape := slices.Clone(c.x.Shape())
	last := len(shape) - 1
	channels, results := shape[last], c.dy.Shape()[1]
	rows := product(shape[:last])
	in := func(x Operand, to ...int) Operand { return x.view(View{Op: Reshape, To: to}) }

	windows := in(l.windowsOfGradient(c), rows, c.Parts*results)
	taps := c.parted.In[1]
	if c.parted.Transposed[1] {
		taps = taps.moved([]int{1, 0})
	}
	taps = in(taps, results, c.Parts, channels)
	weights := in(cut(taps, 1, c.Parts-1, -1, c.Parts).moved([]int{1, 0, 2}), c.Parts*results, channels)
	kind := c.parted.Out[0].Type
	dx := l.add(&Node{Kind: Product, Op: "MatMul", In: []Operand{windows, weights}}, c.dx.Name, kind,
		[]int{rows, channels})
	kind = c.weight.Out[0].Type
	dw := l.add(&Node{
		Kind: Product, Op: "MatMul", In: []Operand{in(c.x, rows, channels), windows}, Transposed: [2]bool{true, false},
	},
		c.weight.Out[0].Name, kind, []int{channels, c.Parts * results})
	taps = in(dw, channels, c.Parts, results)
	s.show(c.weight.Out[0], in(cut(taps, 1, c.Parts-1, -1, c.Parts).moved([]int{2, 1, 0}), results, c.Parts*channels))
	s.show(c.dx, in(dx, shape...))

	s.uses[c.parted.Out[0]] = nil // it belongs to no other convolution

	users := s.uses[c.dy.Tensor]
	first := users[slices.IndexFunc(users, func(u use) bool { return u.node == c.weight || u.node == c.parted })].node
	s.added[first] = append(s.added[first], l.graph.Nodes...)
}

// windowsOfGradient joins the windows of dy that reach each position of x, the last tap first.
func (l *lowering) windowsOfGradient(c *convolution) Operand {
	shape := slices.Clone(c.x.Shape())
	last := len(shape) - 1
	size, name, kind, f32 := shape[c.Axis], c.dy.Tensor.Name, c.dy.Tensor.Type, onnxpb.TensorProto_FLOAT
	shape[c.Axis], shape[last] = c.positions, c.dy.Shape()[1]
	x := c.dy.view(View{Op: Reshape, To: slices.Clone(shape)})
	if kind != f32 { // ONNX Runtime's Pad has no other
		x = l.elementwise("Cast", name+"/wide", f32, x.Shape(), x)
	}
	pads := make([]int, len(shape))
	pads[c.Axis], shape[c.Axis] = c.before, size+c.reach()
	x = l.add(&Node{Kind: Join, Op: "Pad", In: []Operand{x}, Pads: pads}, name+"/padded", f32, slices.Clone(shape))
	if kind != f32 {
		x = l.elementwise("Cast", name+"/narrow", kind, x.Shape(), x)
	}
	join := &Node{Kind: Join, Op: "Concat", Axes: []int{last}, after: c.dy.Tensor.From}
	for i := range c.Parts {
		join.In = append(join.In, cut(x, c.Axis, i*c.Distance, 1, size))
	}
	shape[c.Axis], shape[last] = size, c.Parts*shape[last]
	return l.add(join, fmt.Sprintf("%s/windows%d", name, c.Parts), kind, shape)
}

// show lets the readers of a tensor read an operand.
func (s *windowSharing) show(t *Tensor, by Operand) { show(t, by, 0, s.uses) }

// show lets the readers of a tensor read an operand, in place of what their first views show of the tensor.
func show(t *Tensor, by Operand, first int, uses map[*Tensor][]use) {
	for _, u := range uses[t] {
		o := &u.node.In[u.operand]
		*o = by.through(o.Views[first:])
	}
	uses[by.Tensor], uses[t] = uses[t], nil
}
