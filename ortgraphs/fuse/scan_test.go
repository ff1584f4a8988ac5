package fuse_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// newScanBuilder makes up a graph of small values with recurrences in it.
func newScanBuilder(seed uint64) *builder {
	b := buildOf(seed, []int{2, 3, 4, 6}, 1000)
	b.node("ReduceMax", nil, []*onnxpb.AttributeProto{attribute("keepdims", 0)}, "in0")
	b.values = append(b.values, value{b.floats(1), []int{1}})
	for range 1 + b.IntN(3) {
		b.scan(1 + b.IntN(2))
		for range b.IntN(5) {
			b.step()
		}
	}
	return b
}

// scan adds a Scan over the first dimension of a value. Its step reads values from outside, and has a Scan in it if
// depth says so. Its tensors have names that the written graph would give others.
func (b *builder) scan(depth int) {
	v := b.pick()
	if elements(v.shape) > b.most {
		v = b.values[b.IntN(3)]
	}
	if len(v.shape) == 0 {
		return
	}
	item := v.shape[1:]
	b.node("ReduceMean", item, []*onnxpb.AttributeProto{attribute("keepdims", 0)}, v.name, b.numbers(0))
	start := b.values[len(b.values)-1]
	n := len(b.graph.Node)
	node := &onnxpb.NodeProto{
		OpType: proto.String("Scan"), Input: []string{start.name, v.name},
		Output: []string{fmt.Sprintf("v%d", n), fmt.Sprintf("v%d/all", n)},
		Attribute: []*onnxpb.AttributeProto{
			attribute("num_scan_inputs", 1), attributes("scan_input_directions", []int{b.IntN(2)})[0],
			attributes("scan_output_directions", []int{b.IntN(2)})[0],
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: b.body(item, depth, "")},
		},
	}
	b.graph.Node = append(b.graph.Node, node)
	b.values = append(b.values, value{node.Output[0], item}, value{node.Output[1], v.shape})
}

// body makes up a step with a state and an item of this shape. outer is a name of the step around it.
func (b *builder) body(shape []int, depth int, outer string) *onnxpb.GraphProto {
	prefix := fmt.Sprintf("d%d.", depth)
	g := &onnxpb.GraphProto{Name: proto.String("step")}
	for _, name := range []string{prefix + "state", "constant~" + fmt.Sprint(depth)} {
		g.Input = append(g.Input, &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_TensorType{
				TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(f32))},
			}}})
	}
	last := prefix + "sum"
	add := func(op, out string, in ...string) {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}})
		last = out
	}
	add("Add", last, g.Input[0].GetName(), g.Input[1].GetName())
	if outer != "" {
		add("Sub", prefix+"outer", last, outer)
	}
	for i := range 1 + b.IntN(3) {
		sum, read := last, b.like(value{shape: shape}).name // of the shape, or broadcast to it
		if b.IntN(2) == 0 {                                 // the mean of a tensor of any shape
			add("ReduceMean", fmt.Sprintf("%smean%d", prefix, i), b.pick().name)
			g.Node[len(g.Node)-1].Attribute = []*onnxpb.AttributeProto{attribute("keepdims", 0)}
			read = last
		}
		add([]string{"Mul", "Add", "Max"}[b.IntN(3)], fmt.Sprintf("%sc%d", prefix, i), sum, read)
	}
	if depth > 1 && len(shape) > 1 {
		start, items := prefix+"start", last
		add("ReduceMax", start, items, b.numbers(0))
		g.Node[len(g.Node)-1].Attribute = []*onnxpb.AttributeProto{attribute("keepdims", 0)}
		add("Scan", prefix+"last", start, items)
		inner := g.Node[len(g.Node)-1]
		inner.Output = append(inner.Output, prefix+"inner")
		inner.Attribute = []*onnxpb.AttributeProto{attribute("num_scan_inputs", 1),
			{Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: b.body(shape[1:], depth-1,
				start)}}
		last = prefix + "inner"
	}
	add("Tanh", prefix+"after", last)
	add("Sigmoid", prefix+"result", last)
	for _, name := range []string{prefix + "after", prefix + "result"} {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: proto.String(name), Type: g.Input[0].Type})
	}
	return g
}

// TestRandomScans: a graph around recurrences, whose steps read its tensors by their names, is divided into regions and
// computes what ONNX Runtime computes.
func TestRandomScans(t *testing.T) {
	scans, graphs := 0, nightly.Of(15, 300)
	for seed := range uint64(graphs) {
		b := newScanBuilder(seed)
		model := b.model()
		r, g, regions := partition(t, model, shapes.Sizes{})
		scans += scansIn(g)
		compare(t, model, r, g, regions, batch(r, nil), 1e-5, 1e-5)
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, b.graph.Node)
		}
	}
	if 3*scans < 2*graphs { // some have one step
		t.Errorf("%d recurrences", scans)
	}
}

// TestScanInFunction: the step of a Scan in a function reads what the caller gave it, in each call, and calls functions
// itself.
func TestScanInFunction(t *testing.T) {
	b := newForm()
	for _, weight := range []string{b.add("Exp", "m"), b.add("Transpose", "n", list("perm", 1, 0))} {
		b.node("Sums", nil, nil, b.add("Neg", "m"), "x", weight)
		b.graph.Node[len(b.graph.Node)-1].Domain = proto.String("local")
	}
	n := len(b.graph.Node)
	model := b.outputs(fmt.Sprintf("v%d", n-1), fmt.Sprintf("v%d", n-3))
	tensor := func(name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_TensorType{
				TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(f32))},
			}}}
	}
	node := func(op string, out []string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: out}
	}
	call := node("Half", []string{"half"}, "sum")
	call.Domain = proto.String("local")
	scan := node("Scan", []string{"last", "all"}, "start", "items")
	scan.Attribute = []*onnxpb.AttributeProto{
		attribute("num_scan_inputs", 1), {Name: proto.String("body"), Type: onnxpb.AttributeProto_GRAPH.Enum(),
			G: &onnxpb.GraphProto{Name: proto.String("step"), Input: []*onnxpb.ValueInfoProto{
				tensor("x"), tensor("m"),
			}, Output: []*onnxpb.ValueInfoProto{tensor("v0"), tensor("v1")}, Node: []*onnxpb.NodeProto{
				node("Add", []string{"sum"}, "x", "m"), call, node("Mul", []string{"v0"}, "half", "scale"),
				node("Identity", []string{"v1"}, "half"),
			}}},
	}
	opset := []*onnxpb.OperatorSetIdProto{
		{Version: proto.Int64(20)}, {Domain: proto.String("local"), Version: proto.Int64(1)},
	}
	function := func(name string, in, out []string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
		return &onnxpb.FunctionProto{
			Name: proto.String(name), Domain: proto.String("local"), Input: in, Output: out, Node: nodes,
			OpsetImport: opset,
		}
	}
	model.Functions = []*onnxpb.FunctionProto{
		function("Sums", []string{"start", "items", "weight"}, []string{"all"},
			node("Tanh", []string{"scale"}, "weight"), scan),
		function("Half", []string{"x"}, []string{"y"}, node("Sigmoid", []string{"y"}, "x")),
	}
	model.OpsetImport = opset
	rewritten(t, model)
}
