package fuse

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// plain writes a node of the graph in ONNX's operators.
func (e *emitter) plain(n *Node) {
	switch n.Kind {
	case Elementwise:
		e.elementwise(n)
	case Reduction:
		if n.Out[0].OfKernels() {
			return
		}
		op := map[string]string{"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin"}[n.Op]
		in := e.operand(n.In[0])
		e.node(op, []string{in, e.shape(n.Axes)}, e.result(n), integerAttribute("keepdims", 1))
	case Join:
		e.join(n)
	case Cumulation:
		e.cumulate(n)
	case Product:
		e.product(n)
	case Opaque:
		e.opaque(n)
	}
}

// result places the only output of a node.
func (e *emitter) result(n *Node) []string {
	return []string{e.place(n.Out[0], n.Out[0].Shape)}
}

func (e *emitter) operands(n *Node) []string {
	var in []string
	for _, o := range n.In {
		in = append(in, e.operand(o))
	}
	return in
}

func (e *emitter) elementwise(n *Node) {
	if n.Op == "Copy" {
		e.copy(n.In[0], e.place(n.Out[0], n.Out[0].Shape))
		return
	}
	e.function(n, e.operands(n), e.result(n))
}

// function writes what an elementwise node computes of operands.
func (e *emitter) function(n *Node, in, out []string) {
	o := operators.Table[n.Op]
	ops := o.ONNX
	if len(ops) == 0 {
		ops = []string{n.Op}
	}
	last := len(ops) - 1
	for _, op := range ops[:last] {
		between := []string{e.unique(out[0] + "~" + strings.ToLower(op))}
		e.node(op, in, between)
		in = between
	}
	var attributes []*onnxpb.AttributeProto
	switch {
	case o.Attribute != nil:
		attributes = append(attributes, o.Attribute)
	case o.Alpha != 0:
		attributes = append(attributes, floatAttribute("alpha", n.Alpha))
	case n.Op == "Cast":
		attributes = append(attributes, integerAttribute("to", int(n.Out[0].Type)))
	}
	e.node(ops[last], in, out, attributes...)
}

func (e *emitter) join(n *Node) {
	if n.Op == "Windows" {
		var parts []string
		for i := range n.Windows.Parts {
			parts = append(parts, e.operand(n.Part(i)))
		}
		e.node("Concat", parts, e.result(n), integerAttribute("axis", n.Axes[0]))
		return
	}
	in, out := e.operands(n), e.result(n)
	if n.Op == "Concat" {
		e.node("Concat", in, out, integerAttribute("axis", n.Axes[0]))
		return
	}
	var after []int
	for i, d := range n.In[0].Shape() {
		after = append(after, n.Out[0].Shape[i]-d-n.Pads[i])
	}
	pads := e.shape(append(append([]int{}, n.Pads...), after...))
	e.node("Pad", []string{in[0], pads, e.numbers([]float64{n.Fill}, n.Out[0].Type, []int{})}, out)
}

// product writes a matrix product with the operator that takes its operands as they are.
func (e *emitter) product(n *Node) {
	names := [...]string{"transA", "transB"}
	var transposed []*onnxpb.AttributeProto
	matrices := true
	in := e.operands(n)
	for i, o := range n.In[:len(names)] {
		matrices = matrices && len(o.Shape()) == 2
		switch {
		case !n.Transposed[i]:
		case !isFloating(n.Out[0].Type):
			in[i] = e.through(in[i], []View{swapLast(o.Shape())})
		default:
			transposed = append(transposed, integerAttribute(names[i], 1))
		}
	}
	op, operands, added := "MatMul", in[:2], in[2:]
	switch {
	case matrices && isFloating(n.Out[0].Type):
		op = "Gemm"
		if len(added) > 0 {
			operands, added = in[:3], in[3:]
		}
	case len(transposed) > 0:
		op = "FusedMatMul"
	}
	out := e.result(n)
	next := func() []string { // the name of a sum to which others are added until it is the result
		if len(added) == 0 {
			return out
		}
		return []string{e.unique(out[0] + "~sum")}
	}
	sum := next()
	if product := e.node(op, operands, sum, transposed...); op == "FusedMatMul" {
		product.Domain = proto.String("com.microsoft")
		e.require("com.microsoft", 1)
	}
	for len(added) > 0 {
		operands, added = []string{sum[0], added[0]}, added[1:]
		sum = next()
		e.node("Add", operands, sum)
	}
}

// opaque writes a node of the model with the names that its tensors have here.
func (e *emitter) opaque(n *Node) {
	var in, out []string
	for _, o := range n.In {
		if o.Tensor == nil {
			in = append(in, "")
			continue
		}
		in = append(in, e.operand(o))
	}
	for _, t := range n.Out {
		if t == nil {
			out = append(out, "")
			continue
		}
		out = append(out, e.place(t, t.Shape))
	}
	e.original(n.Model, in, out)
}

func isFloating(t shapes.Type) bool {
	return t == onnxpb.TensorProto_FLOAT || t == onnxpb.TensorProto_BFLOAT16 || t == onnxpb.TensorProto_FLOAT16 ||
		t == onnxpb.TensorProto_DOUBLE
}
