package fuse_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// emit writes a graph without any kernel.
func emit(t *testing.T, g *fuse.Graph, regions []*fuse.Region) *onnxpb.ModelProto {
	t.Helper()
	m, err := g.Model(regions, func(*fuse.Region) []*fuse.Call { return nil })
	if err == nil {
		err = wellFormed(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wellFormed reports whether each name of a model is defined once and before it is read, also in the graphs of its
// nodes.
func wellFormed(m *onnxpb.ModelProto) error {
	return wellFormedGraph(m.Graph, map[string]bool{"": true})
}

func wellFormedGraph(g *onnxpb.GraphProto, defined map[string]bool) error {
	define := func(name string) error {
		if defined[name] && name != "" {
			return fmt.Errorf("%s is defined twice", name)
		}
		defined[name] = true
		return nil
	}
	var errs []error
	for _, v := range g.Input {
		errs = append(errs, define(v.GetName()))
	}
	for _, v := range g.Initializer {
		errs = append(errs, define(v.GetName()))
	}
	for _, n := range g.Node {
		for _, name := range n.Input {
			if !defined[name] {
				errs = append(errs, fmt.Errorf("%s reads %s before it is defined", n.GetName(), name))
			}
		}
		for _, a := range n.Attribute {
			if a.G != nil {
				errs = append(errs, wellFormedGraph(a.G, defined))
			}
		}
		for _, name := range n.Output {
			errs = append(errs, define(name))
		}
	}
	for _, v := range g.Output {
		if !defined[v.GetName()] {
			errs = append(errs, fmt.Errorf("the output %s is not defined", v.GetName()))
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rewritten compares what a model computes with what it computes after it was lowered and written, and returns the
// written model.
func rewritten(t *testing.T, model *onnxpb.ModelProto) *onnxpb.ModelProto {
	t.Helper()
	r, g, regions := partition(t, model, shapes.Sizes{})
	for _, n := range g.Nodes {
		for _, o := range n.In {
			if o.Tensor != nil && o.Tensor.Type == i64 &&
				slices.ContainsFunc(o.Tensor.Data, func(x float64) bool { return x >= 1<<53 }) {
				t.Errorf("%s has the rounded numbers %v", o.Tensor.Name, o.Tensor.Data)
			}
		}
	}
	inputs := batch(r, nil)
	m := emit(t, g, regions)
	want, got := runModel(t, model, r, nil, inputs), runModel(t, m, r, nil, inputs)
	for name := range want {
		near(t, name, got[name], want[name], 1e-6, 0)
	}
	return m
}

// calls returns the node of a custom operator for each region.
func calls(r *fuse.Region) []*fuse.Call {
	return []*fuse.Call{{
		Op: "Kernel", Domain: "xtts.host", Attributes: []*onnxpb.AttributeProto{attribute("call", 7)}, In: r.In,
		Out: r.Out, Shapes: r.Shapes,
	}}
}

// TestCalls: a region's kernel is one node. It writes the outputs of the model in their shapes, and another tensor as a
// product reads it.
func TestCalls(t *testing.T) {
	b := newForm()
	b.node("Tanh", []int{2, 3, 4}, nil, "x")
	b.node("Neg", []int{2, 3, 4}, nil, "v0")
	b.node("Reshape", []int{6, 4}, nil, "v1", b.numbers(6, 4))
	b.node("Transpose", []int{4, 6}, attributes("perm", []int{1, 0}), "v2")
	b.node("MatMul", []int{6, 6}, nil, "v2", "v3")
	b.node("Exp", []int{2, 3, 4}, nil, "y")
	b.node("Reshape", []int{6, 4}, nil, "v5", b.numbers(6, 4))
	b.node("MatMul", []int{6, 3}, nil, "v6", "n")
	model := b.outputs("v2", "v4", "v7")
	_, g, regions := partition(t, model, shapes.Sizes{})
	m, err := g.Model(regions, calls)
	if err == nil {
		err = wellFormed(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range m.Graph.Node {
		line := fmt.Sprintf("%s.%s %v %v", n.GetDomain(), n.GetOpType(), n.Input, n.Output)
		for _, a := range n.Attribute {
			line += fmt.Sprintf(" %s=%d", a.GetName(), a.GetI())
		}
		got = append(got, line)
	}
	want := []string{
		"xtts.host.Kernel [x] [v2] call=7", "xtts.host.Kernel [y] [v5] call=7", ".Gemm [v5 n] [v7]",
		".Gemm [v2 v2] [v4] transB=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes\n%s", strings.Join(got, "\n"))
	}
	if v := m.Graph.ValueInfo; len(v) != 1 || !proto.Equal(v[0], info("v5", []int{6, 4})) {
		t.Errorf("value infos %v", v)
	}
	if o := m.Graph.Output; len(o) != 3 || !proto.Equal(o[0], info("v2", []int{6, 4})) {
		t.Errorf("outputs %v", o)
	}
	if len(m.OpsetImport) != 2 || m.OpsetImport[1].GetDomain() != "xtts.host" || m.OpsetImport[1].GetVersion() != 1 {
		t.Errorf("opsets %v", m.OpsetImport)
	}
}

// TestOutputs: outputs of the model may be anything that a graph has.
func TestOutputs(t *testing.T) {
	b := newForm()
	b.node("Identity", []int{2, 3, 4}, nil, "x")
	b.node("Transpose", []int{4, 3, 2}, nil, "x")
	b.node("Exp", []int{2, 3, 4}, nil, "x")
	b.node("Identity", []int{2, 3, 4}, nil, "v2")
	b.node("Reshape", []int{24}, nil, "v2", b.numbers(24))
	b.node("Expand", []int{2, 2}, nil, b.floats(1), b.numbers(2, 2))
	b.node("Add", []int{2, 3, 4}, nil, "v2", "v3")
	b.node("ReduceSum", nil, []*onnxpb.AttributeProto{attribute("keepdims", 0)}, "x")
	rewritten(t, b.outputs("v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "y", "c1"))
}

// TestFunctions: the nodes of functions have names of their own for each call, and the attributes of the call.
func TestFunctions(t *testing.T) {
	b := newForm()
	b.node("Flip", nil, []*onnxpb.AttributeProto{attribute("along", 1)}, "x")
	b.node("Flip", nil, []*onnxpb.AttributeProto{attribute("along", 2)}, "v0")
	for _, n := range b.graph.Node[:2] {
		n.Domain = proto.String("local")
	}
	model := b.outputs("v0", "v1")
	inner := newForm()
	inner.add("CumSum", "in", inner.add("Constant", &onnxpb.AttributeProto{
		Name: proto.String("value_int"), Type: onnxpb.AttributeProto_INT.Enum(), RefAttrName: proto.String("along"),
	}))
	inner.add("Tanh", "v1")
	inner.add("Gather", "v2", inner.add("Constant", list("value_ints", 1, 0)),
		&onnxpb.AttributeProto{
			Name: proto.String("axis"), Type: onnxpb.AttributeProto_INT.Enum(), RefAttrName: proto.String("along"),
		})
	model.Functions = []*onnxpb.FunctionProto{{
		Name: proto.String("Flip"), Domain: proto.String("local"), Input: []string{"in"}, Output: []string{"v4"},
		Attribute: []string{"along"}, Node: inner.graph.Node,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}}
	model.OpsetImport = append(model.OpsetImport,
		&onnxpb.OperatorSetIdProto{Domain: proto.String("local"), Version: proto.Int64(1)})
	rewritten(t, model)
}

// TestInitializers: a constant in a file of its own stays there, and the tensor of a Constant becomes an initializer.
func TestInitializers(t *testing.T) {
	b := newForm()
	b.add("Mul", "m", b.floats(4))
	large := &onnxpb.TensorProto{
		Name: proto.String("v1"), Dims: []int64{5000}, DataType: proto.Int32(int32(f32)),
		FloatData: make([]float32, 5000),
	}
	b.add("Constant", content("value", large))
	b.add("Neg", "v1")
	c := b.graph.Initializer[0]
	c.FloatData, c.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
	c.ExternalData = []*onnxpb.StringStringEntryProto{
		{Key: proto.String("location"), Value: proto.String("weights.bin")},
	}
	_, g, regions := partition(t, b.outputs("v0", "v2"), shapes.Sizes{})
	m := emit(t, g, regions)
	if len(m.Graph.Initializer) != 2 || !proto.Equal(m.Graph.Initializer[0], c) ||
		!proto.Equal(m.Graph.Initializer[1], large) {
		t.Errorf("initializers %v", m.Graph.Initializer)
	}
}

// TestSameModel: the same graph gives the same bytes.
func TestSameModel(t *testing.T) {
	var files [2][]byte
	for i := range files {
		model := load(t, "../testdata/pico/training_model.onnx")
		_, g, regions := partition(t, model, shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3})
		m, err := g.Model(regions, calls)
		if err != nil {
			t.Fatal(err)
		}
		if files[i], err = (proto.MarshalOptions{Deterministic: true}).Marshal(m); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two models of the same graph differ")
	}
}

// TestModelErrors: what cannot be written is refused.
func TestModelErrors(t *testing.T) {
	for want, change := range map[string]func(m *onnxpb.ModelProto){
		"the model's opset is older than 18": func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = proto.Int64(17) },
		`versions 20 and 21 of the domain ""`: func(m *onnxpb.ModelProto) {
			m.Functions = []*onnxpb.FunctionProto{
				{OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(21)}}},
			}
		},
		"the node of v0 (Trilu): its graph reads nothing, which nothing computes": func(m *onnxpb.ModelProto) {
			body := &onnxpb.GraphProto{Output: []*onnxpb.ValueInfoProto{{Name: proto.String("nothing")}}}
			m.Graph.Node[0].Attribute = []*onnxpb.AttributeProto{{Name: proto.String("body"), G: body}}
		},
		"a constant of type FLOAT16 cannot be written": func(m *onnxpb.ModelProto) {
			m.Graph.Node[1].Attribute[0].I = proto.Int64(int64(onnxpb.TensorProto_FLOAT16))
		},
	} {
		b := newForm()
		b.node("Trilu", []int{2, 3, 4}, nil, "x")
		b.node("Cast", []int{2, 3, 4}, []*onnxpb.AttributeProto{attribute("to", int(onnxpb.TensorProto_FLOAT))}, "v0")
		b.node("ReduceMean", nil, nil, "v1")
		model := b.outputs("v2")
		change(model)
		r, err := shapes.Infer(model, shapes.Sizes{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := fuse.Lower(r)
		if err == nil {
			_, err = g.Model(fuse.Partition(g), calls)
		}
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
