package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// cumulable are the types that a kernel adds up along an axis.
var cumulable = []shapes.Type{
	onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_BFLOAT16, onnxpb.TensorProto_DOUBLE, onnxpb.TensorProto_INT32,
	onnxpb.TensorProto_INT64,
}

// cumSum lowers the sums of the elements up to each one, along an axis that is known.
func (l *lowering) cumSum(n *shapes.Node) bool {
	x, v := l.operand(n.In[0]), n.Out[0]
	a, known := small(l.operand(n.In[1]))
	axis, ok := within(int(a), len(v.Shape))
	if !known || !ok || !slices.Contains(cumulable, v.Type) || product(sizes(v)) == 0 {
		return false
	}
	c := &Node{Kind: Cumulation, Op: "CumSum", In: []Operand{x}, Axes: []int{axis},
		Exclusive: integer(n, "exclusive", 0) != 0, Reverse: integer(n, "reverse", 0) != 0}
	switch {
	case v.Shape[axis] > 1:
		l.operands[v] = l.add(c, v.Name, v.Type, sizes(v))
	case c.Exclusive: // nothing is before or after the only element
		l.operands[v] = scalar(0, v.Type).view(View{Op: Expand, To: sizes(v)})
	default:
		l.operands[v] = x
	}
	return true
}

// narrowed returns sums in f64 of numbers that were f32 or bf16, which are rounded to one of these types again, as sums
// in that type: those are added up in f64 and rounded once, too. So neither the numbers nor the sums are in memory in
// f64.
func (l *lowering) narrowed(x Operand, to shapes.Type) (Operand, bool) {
	n := x.Tensor.From
	if n == nil || n.Op != "CumSum" || x.Tensor.Type != onnxpb.TensorProto_DOUBLE || !isFloat(to) {
		return x, false
	}
	cast := n.In[0].Tensor.From
	if cast == nil || cast.Op != "Cast" || !isFloat(cast.In[0].Tensor.Type) ||
		!slices.Equal(cast.In[0].Shape(), cast.Out[0].Shape) {
		return x, false
	}
	from := cast.In[0].through(n.In[0].Views)
	kind, name := from.Tensor.Type, x.Tensor.Name+"/narrow"
	if kind != to && kind != onnxpb.TensorProto_FLOAT {
		kind = onnxpb.TensorProto_FLOAT
		from = l.elementwise("Cast", name+"/wide", kind, from.Shape(), from)
	}
	c := *n
	c.In = []Operand{from}
	y := l.add(&c, name, kind, n.Out[0].Shape)
	return y.through(x.Views), true
}

// cumulated is the number of elements along which a node adds up.
func (n *Node) cumulated() int { return n.Out[0].Shape[n.Axes[0]] }

// cumulate writes a node in f64 if its numbers are floating-point ones, as its kernel computes it.
func (e *emitter) cumulate(n *Node) {
	t, double := n.Out[0].Type, onnxpb.TensorProto_DOUBLE
	out := e.result(n)[0]
	sums := out
	if isFloat(t) {
		sums = e.unique(out + "~sums")
	}
	wide := func(o Operand) string {
		x := e.operand(o)
		if !isFloat(t) {
			return x
		}
		cast := e.unique(out + "~wide")
		e.node("Cast", []string{x}, []string{cast}, integerAttribute("to", int(double)))
		return cast
	}
	if n.Op == "CumSum" {
		axis := e.numbers([]float64{float64(n.Axes[0])}, onnxpb.TensorProto_INT64, []int{})
		e.node("CumSum", []string{wide(n.In[0]), axis}, []string{sums}, flag("exclusive", n.Exclusive),
			flag("reverse", n.Reverse))
	} else {
		e.steps(n, wide, sums)
	}
	if isFloat(t) {
		e.node("Cast", []string{sums}, []string{out}, integerAttribute("to", int(t)))
	}
}

func flag(name string, set bool) *onnxpb.AttributeProto {
	if set {
		return integerAttribute(name, 1)
	}
	return integerAttribute(name, 0)
}

// cumulates finds the axis along which a node of the region adds up: one node, over the whole domain. Such a region
// reduces nothing.
func (it *iteration) cumulates() bool {
	reduces := false
	for _, n := range it.nodes {
		switch n.Kind {
		case Reduction:
			reduces = true
		case Cumulation:
			l := it.layouts[n.Out[0]]
			if it.along != nil || len(it.axes.flat(l)) != len(it.domain) {
				return false
			}
			it.along = it.axes.expand(l[n.Axes[0]])
		}
	}
	return it.along == nil || !reduces
}
