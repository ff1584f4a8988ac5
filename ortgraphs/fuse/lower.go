package fuse

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Lower rewrites a model whose shapes are known into nodes of few kinds: views become parts of operands, what follows
// from the sizes becomes constant, and composed operators (Softmax, LayerNormalization, Gemm with a bias, ...) become
// the operations that their definitions name (https://onnx.ai/onnx/operators). It fails if an output has no known
// shape.
func Lower(r *shapes.Result) (*Graph, error) {
	l := &lowering{graph: &Graph{model: r.Model}, operands: map[*shapes.Value]Operand{}}
	for _, v := range r.Inputs {
		t := &Tensor{Name: v.Name, Type: v.Type, Shape: sizes(v)}
		l.operands[v] = Operand{Tensor: t}
		l.graph.Inputs = append(l.graph.Inputs, t)
	}
	for _, v := range r.Constants {
		l.operands[v] = Operand{Tensor: constantOf(v)}
	}
	for _, n := range needed(r) {
		if slices.ContainsFunc(n.Out, func(v *shapes.Value) bool { return v != nil && !v.Known() }) {
			return nil, fmt.Errorf("%s (%s): its shape is not known", n.Place, n.Op())
		}
		before := len(l.graph.Nodes)
		if !l.lower(n) || slices.ContainsFunc(l.graph.Nodes[before:], (*Node).mixed) {
			l.graph.Nodes = l.graph.Nodes[:before]
			l.opaque(n)
		}
	}
	for i, v := range r.Outputs {
		if v == nil || !v.Known() {
			return nil, fmt.Errorf("an output has no known shape")
		}
		t := l.stored(l.operand(v))
		l.graph.Outputs = append(l.graph.Outputs, Output{r.Model.Graph.Output[i].GetName(), t.Tensor, sizes(v)})
	}
	l.graph.Nodes = reachable(l.graph)
	return l.graph, nil
}

// needed returns the nodes that compute what does not follow from the sizes, in their order.
func needed(r *shapes.Result) []*shapes.Node {
	seen := map[*shapes.Node]bool{}
	open := slices.Clone(r.Outputs)
	for len(open) > 0 {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		if v != nil && v.Data == nil && v.From != nil && !seen[v.From] {
			seen[v.From] = true
			open = append(open, v.From.Reads()...)
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Nodes), func(n *shapes.Node) bool { return !seen[n] })
}

// reachable returns the nodes that the outputs need, in their order.
func reachable(g *Graph) []*Node {
	seen := map[*Node]bool{}
	var visit func(t *Tensor)
	visit = func(t *Tensor) {
		if t.From == nil || seen[t.From] {
			return
		}
		seen[t.From] = true
		for _, o := range t.From.In {
			if o.Tensor != nil {
				visit(o.Tensor)
			}
		}
	}
	for _, o := range g.Outputs {
		visit(o.Tensor)
	}
	return slices.DeleteFunc(slices.Clone(g.Nodes), func(n *Node) bool { return !seen[n] })
}

// lowering is a model on its way to a graph.
type lowering struct {
	graph    *Graph
	operands map[*shapes.Value]Operand
}

func sizes(v *shapes.Value) []int {
	shape := make([]int, len(v.Shape))
	for i, d := range v.Shape {
		shape[i] = int(d)
	}
	return shape
}

func constantOf(v *shapes.Value) *Tensor {
	t := &Tensor{Name: v.Name, Type: v.Type, Shape: sizes(v), Constant: true, Data: v.Data, Value: v}
	if v.Rounded() {
		t.Data = nil
	}
	return t
}

// operand returns a value of the model as nodes read it.
func (l *lowering) operand(v *shapes.Value) Operand {
	if o, ok := l.operands[v]; ok {
		return o
	}
	o := Operand{Tensor: constantOf(v)} // it follows from the sizes: needed skipped its node
	l.operands[v] = o
	return o
}

// add adds a node with one output.
func (l *lowering) add(n *Node, name string, t shapes.Type, shape []int) Operand {
	l.graph.Nodes = append(l.graph.Nodes, n)
	return Operand{Tensor: n.makes(name, t, shape)}
}

// elementwise adds an elementwise node for a value of the model, or for a part of it, which name says.
func (l *lowering) elementwise(op, name string, t shapes.Type, shape []int, in ...Operand) Operand {
	return l.add(&Node{Kind: Elementwise, Op: op, In: in}, name, t, shape)
}

// reduce adds a reduction: sum, max or min. One over axes of size 1 is none, and one of equal numbers that are known is
// a number: a kernel that reads nothing cannot be launched.
func (l *lowering) reduce(op, name string, x Operand, axes ...int) Operand {
	shape := slices.Clone(x.Shape())
	for _, a := range axes {
		shape[a] = 1
	}
	if slices.Equal(shape, x.Shape()) {
		return x
	}
	if c, ok := small(x); ok && product(x.Shape()) > 0 {
		if op == "sum" {
			c *= float64(product(x.Shape()) / product(shape))
		}
		return scalar(c, x.Tensor.Type).view(View{Op: Expand, To: shape})
	}
	return l.add(&Node{Kind: Reduction, Op: op, In: []Operand{x}, Axes: axes}, name, x.Tensor.Type, shape)
}

func scalar(x float64, t shapes.Type) Operand {
	return Operand{Tensor: &Tensor{Name: fmt.Sprint(x), Type: t, Shape: []int{}, Constant: true, Data: []float64{x}}}
}

// stored returns the operand without views, except for a changed shape: as it is for a tensor in memory.
func (l *lowering) stored(o Operand) Operand {
	if o.Reshaped() {
		return o
	}
	return l.elementwise("Copy", o.Tensor.Name+"/copy", o.Tensor.Type, o.Shape(), o)
}

func (l *lowering) opaque(n *shapes.Node) {
	p := &Node{Kind: Opaque, Op: n.Op(), Model: n}
	for _, v := range n.Reads() {
		if v == nil {
			p.In = append(p.In, Operand{})
			continue
		}
		p.In = append(p.In, l.stored(l.operand(v)))
	}
	for _, v := range n.Out {
		if v == nil {
			p.Out = append(p.Out, nil)
			continue
		}
		t := &Tensor{Name: v.Name, Type: v.Type, Shape: sizes(v), From: p}
		p.Out = append(p.Out, t)
		l.operands[v] = Operand{Tensor: t}
	}
	l.graph.Nodes = append(l.graph.Nodes, p)
}

// lower adds the nodes for one of the model. It returns false if no rule knows the operator in this form.
func (l *lowering) lower(n *shapes.Node) bool {
	if r, ok := rules[n.Op()]; ok {
		return has(n, r.inputs) && r.apply(l, n)
	}
	if n.Op() == "Scan" {
		return l.scan(n)
	}
	o := operators.Table[n.Op()]
	if o == nil || len(o.ONNX) > 0 || !has(n, max(o.Inputs, 1)) || o.Inputs > 0 && len(n.In) > o.Inputs ||
		slices.Contains(n.In, nil) || len(n.Out) != 1 {
		return false
	}
	p := &Node{Kind: Elementwise, Op: n.Op()}
	for _, v := range n.In {
		p.In = append(p.In, l.operand(v))
	}
	if n.Op() == "Pow" {
		p.In[1] = exponent(p.In[0], p.In[1])
	}
	if o.Alpha != 0 {
		p.Alpha = float(n, "alpha", o.Alpha)
	}
	v := n.Out[0]
	l.operands[v] = l.add(p, v.Name, v.Type, sizes(v))
	return true
}

// mixed reports whether operands have other types than the operator allows: ONNX Runtime refuses such a node, or
// converts them.
func (n *Node) mixed() bool {
	if n.Op == "Cast" {
		return false
	}
	in, want := n.In, n.Out[0].Type
	if o := operators.Table[n.Op]; n.Kind == Elementwise && o.Result == operators.Boolean {
		want = in[0].Tensor.Type
	} else if n.Kind == Elementwise && o.Result == operators.OfSecond {
		if in[0].Tensor.Type != onnxpb.TensorProto_BOOL {
			return true
		}
		in = in[1:]
	}
	return slices.ContainsFunc(in, func(o Operand) bool { return o.Tensor.Type != want })
}

// exponent returns the one of a power in the type of the base: ONNX allows any, and has the result in that of the base.
func exponent(base, x Operand) Operand {
	t := base.Tensor.Type
	number, ok := small(x)
	// bf16 has it, too
	exact := float64(float32(number)) == number && math.Float32bits(float32(number))&0xffff == 0
	if !ok || !exact || x.Tensor.Type == t || !isFloat(t) && !isDouble(t) {
		return x
	}
	return scalar(number, t)
}

// has reports whether the first inputs and the first output of a node are there, which a file may omit.
func has(n *shapes.Node, inputs int) bool {
	for i := range inputs {
		if n.Input(i) == nil {
			return false
		}
	}
	return len(n.Out) > 0 && n.Out[0] != nil
}

func float(n *shapes.Node, name string, otherwise float64) float64 {
	if a := n.Attribute(name); a != nil {
		return float64(a.GetF())
	}
	return otherwise
}

func integer(n *shapes.Node, name string, otherwise int) int {
	return int(n.Integer(name, int64(otherwise)))
}

func text(n *shapes.Node, name, otherwise string) string {
	if a := n.Attribute(name); a != nil {
		return string(a.GetS())
	}
	return otherwise
}

// numbers is [shapes.Node.Integers], with numbers to which a size can be added.
func numbers(n *shapes.Node, input int, attribute string) (list []int, given, ok bool) {
	values, given, ok := n.Integers(input, attribute)
	for _, x := range values {
		// a slice to the end of any size has the largest integer
		list = append(list, int(max(-farAway, min(x, farAway))))
	}
	return list, given, ok
}

// farAway is more than any size.
const farAway = 1 << 53

// isFloat reports whether a region computes with the type in f32.
func isFloat(t shapes.Type) bool {
	return t == onnxpb.TensorProto_FLOAT || t == onnxpb.TensorProto_BFLOAT16
}

func isDouble(t shapes.Type) bool { return t == onnxpb.TensorProto_DOUBLE }

// within returns an axis counted from the front, or false if the rank does not have it.
func within(axis, rank int) (int, bool) {
	if axis < 0 {
		axis += rank
	}
	return axis, axis >= 0 && axis < rank
}

// small reports whether the numbers of a constant are known, and returns the only one if it has one.
func small(o Operand) (float64, bool) {
	if !o.Tensor.Constant || len(o.Tensor.Data) != 1 {
		return math.NaN(), false
	}
	return o.Tensor.Data[0], true
}
