package fuse

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// steps writes a Cumulation that is no sum as a Scan in f64, along the first axis. in writes an operand in f64.
func (e *emitter) steps(n *Node, in func(Operand) string, out string) {
	shape, order := n.Out[0].Shape, []int{n.Axes[0]}
	for i := range shape {
		if i != n.Axes[0] {
			order = append(order, i)
		}
	}
	front := permuted(shape, order)
	last := len(n.In) - 1
	inputs := []string{in(n.In[last].moved(order).view(View{Op: Reshape, To: front[1:]}))}
	for _, o := range n.In[:last] {
		if !slices.Equal(o.Shape(), shape) {
			o = o.view(View{Op: Expand, To: shape})
		}
		inputs = append(inputs, in(o.moved(order)))
	}
	end, all := e.unique(out+"~end"), e.unique(out+"~steps")
	step := e.step(n, out)
	directions := slices.Repeat([]int{0}, last)
	if n.Reverse {
		directions = slices.Repeat([]int{1}, last)
	}
	e.node("Scan", inputs, []string{end, all}, integerAttribute("num_scan_inputs", last),
		integers("scan_input_directions", directions), integers("scan_output_directions", directions[:1]),
		&onnxpb.AttributeProto{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: step})
	e.node("Transpose", []string{all}, []string{out}, integers("perm", inverse(order)))
}

// step is one step of such a node: it returns what it passes on, and what it is passed.
func (e *emitter) step(n *Node, name string) *onnxpb.GraphProto {
	double := onnxpb.TensorProto_DOUBLE
	g := &onnxpb.GraphProto{Name: proto.String("step")}
	value := func(of string) string { return e.unique(name + "~" + of) }
	typed := func(name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_TensorType{
				TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(double))},
			}}}
	}
	add := func(op string, in ...string) string {
		out := value(op)
		g.Node = append(g.Node, &onnxpb.NodeProto{
			Name: proto.String(out), OpType: proto.String(op), Input: in, Output: []string{out},
		})
		return out
	}
	x := value("passed")
	g.Input = append(g.Input, typed(x))
	var items []string
	for range n.In[1:] {
		item := value("item")
		items, g.Input = append(items, item), append(g.Input, typed(item))
	}
	var next string
	if n.Op == Affine {
		next = add("Add", add("Mul", items[0], x), items[1])
	} else { // equal infinities have no difference
		least, most := e.numbers([]float64{-1e300}, double, []int{}), e.numbers([]float64{1e300}, double, []int{})
		one := e.numbers([]float64{1}, double, []int{})
		apart := add("Abs", add("Sub", add("Clip", x, least, most), add("Clip", items[0], least, most)))
		next = add("Add", add("Max", x, items[0]), add("Log", add("Add", add("Exp", add("Neg", apart)), one)))
	}
	g.Output = append(g.Output, typed(next), typed(add("Identity", x)))
	return g
}
