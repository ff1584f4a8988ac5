package prune_test

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
)

// node makes a node that is named after its operator and first output.
func node(op string, inputs, outputs []string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		Name: proto.String(op + " " + outputs[0]), OpType: proto.String(op), Input: inputs, Output: outputs,
		Attribute: attributes,
	}
}

func in(domain string, n *onnxpb.NodeProto) *onnxpb.NodeProto {
	n.Domain = proto.String(domain)
	return n
}

func body(g *onnxpb.GraphProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String("body"), G: g}
}

func values(names ...string) (list []*onnxpb.ValueInfoProto) {
	for _, name := range names {
		list = append(list, &onnxpb.ValueInfoProto{Name: proto.String(name)})
	}
	return list
}

func tensors(names ...string) (list []*onnxpb.TensorProto) {
	for _, name := range names {
		list = append(list, &onnxpb.TensorProto{Name: proto.String(name)})
	}
	return list
}

func function(domain, name string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
	return &onnxpb.FunctionProto{Domain: proto.String(domain), Name: proto.String(name), Node: nodes}
}

func names[T interface{ GetName() string }](list []T) (out []string) {
	for _, v := range list {
		out = append(out, v.GetName())
	}
	return out
}

func only(kept ...string) func(string) bool {
	return func(output string) bool { return slices.Contains(kept, output) }
}

// example has a loss, whose path goes through a branch that reads outer values, a function that calls another, and a
// node of which one output is needed; and a gradient with all of that of its own.
func example() *onnxpb.ModelProto {
	inside := &onnxpb.GraphProto{
		Initializer: tensors("mine"),
		Node: []*onnxpb.NodeProto{
			node("Mul", []string{"outer", "mine"}, []string{"m"}),
			node("Loop", []string{"m"}, []string{"l"}, body(&onnxpb.GraphProto{
				Input: values("i"), Node: []*onnxpb.NodeProto{node("Add", []string{"i", "deep"}, []string{"s"})},
				Output: values("s"),
			})),
		},
		Output: values("l", "through"),
	}
	sparse := func(name string) *onnxpb.SparseTensorProto {
		return &onnxpb.SparseTensorProto{Values: &onnxpb.TensorProto{Name: proto.String(name)}}
	}
	return &onnxpb.ModelProto{
		OpsetImport: []*onnxpb.OperatorSetIdProto{
			{Domain: proto.String("ai.onnx")}, {Domain: proto.String("fn")}, {Domain: proto.String("back")},
		},
		Graph: &onnxpb.GraphProto{
			Name:              proto.String("g"),
			Input:             values("x", "w", "only back", "cond"),
			Output:            values("grad.w", "loss", "metric", "x"),
			Initializer:       tensors("deep", "unused", "c", "back c"),
			SparseInitializer: []*onnxpb.SparseTensorProto{sparse("through"), sparse("back sparse")},
			ValueInfo:         values("outer", "indices", "dx", "y"),
			QuantizationAnnotation: []*onnxpb.TensorAnnotation{
				{TensorName: proto.String("y")}, {TensorName: proto.String("dx")},
			},
			Node: []*onnxpb.NodeProto{
				node("Relu", []string{"w"}, []string{"outer"}),
				node("TopK", []string{"x", "", "c"}, []string{"y", "indices"}),
				in("back", node("Grad", []string{"y", "only back", "back c", "back sparse"}, []string{"dx"})),
				node("If", []string{"cond"}, []string{"branch", "other"}, body(inside)),
				node("Sum", []string{"dx", "branch"}, []string{"grad.w"}),
				in("fn", node("Outer", []string{"branch", "y"}, []string{"loss"})),
				node("Neg", []string{"loss"}, []string{"metric"}),
			},
		},
		Functions: []*onnxpb.FunctionProto{
			function("back", "Grad", node("Erf", []string{"a"}, []string{"b"})),
			function("fn", "Outer", node("If", []string{"a"}, []string{"b"}, body(&onnxpb.GraphProto{
				Node: []*onnxpb.NodeProto{in("fn", node("Inner", nil, []string{"r"}))},
			}))),
			function("fn", "Inner", node("Exp", []string{"a"}, []string{"b"})),
			function("fn", "Unused", node("Exp", []string{"a"}, []string{"b"})),
		},
	}
}

func TestModel(t *testing.T) {
	type left struct{ outputs, inputs, nodes, initializers, sparse, infos, annotations, functions, domains []string }
	leftOf := func(m *onnxpb.ModelProto) (l left) {
		g := m.Graph
		l = left{
			outputs: names(g.Output), inputs: names(g.Input), nodes: names(g.Node), initializers: names(g.Initializer),
			infos: names(g.ValueInfo), functions: names(m.Functions),
		}
		for _, s := range g.SparseInitializer {
			l.sparse = append(l.sparse, s.Values.GetName())
		}
		for _, a := range g.QuantizationAnnotation {
			l.annotations = append(l.annotations, a.GetTensorName())
		}
		for _, o := range m.OpsetImport {
			l.domains = append(l.domains, o.GetDomain())
		}
		return l
	}
	forward := []string{"Relu outer", "TopK y", "If branch", "Outer loss"}
	for _, c := range []struct {
		keep []string
		want left
	}{
		{[]string{"metric", "loss"}, left{
			[]string{"loss", "metric"}, []string{"x", "w", "cond"}, append(slices.Clone(forward), "Neg metric"),
			[]string{"deep", "c"}, []string{"through"}, []string{"outer", "indices", "y"}, []string{"y"},
			[]string{"Outer", "Inner"}, []string{"ai.onnx", "fn"},
		}},
		{[]string{"loss"}, left{
			[]string{"loss"}, []string{"x", "w", "cond"}, forward, []string{"deep", "c"},
			[]string{"through"}, []string{"outer", "indices", "y"}, []string{"y"}, []string{"Outer", "Inner"},
			[]string{"ai.onnx", "fn"},
		}},
		{[]string{"grad.w"}, left{
			[]string{"grad.w"}, []string{"x", "w", "only back", "cond"},
			[]string{"Relu outer", "TopK y", "Grad dx", "If branch", "Sum grad.w"}, []string{"deep", "c", "back c"},
			[]string{"through", "back sparse"}, []string{"outer", "indices", "dx", "y"}, []string{"y", "dx"},
			[]string{"Grad"}, []string{"ai.onnx", "back"},
		}},
		{[]string{"x"}, left{outputs: []string{"x"}, inputs: []string{"x"}, domains: []string{"ai.onnx"}}},
	} {
		m, err := prune.Model(example(), only(c.keep...))
		if err != nil {
			t.Fatal(err)
		}
		got := leftOf(m)
		for what, lists := range map[string][2][]string{
			"outputs": {got.outputs, c.want.outputs}, "inputs": {got.inputs, c.want.inputs},
			"nodes": {got.nodes, c.want.nodes}, "initializers": {got.initializers, c.want.initializers},
			"sparse initializers": {got.sparse, c.want.sparse}, "value infos": {got.infos, c.want.infos},
			"annotations": {got.annotations, c.want.annotations}, "functions": {got.functions, c.want.functions},
			"domains": {got.domains, c.want.domains},
		} {
			if !slices.Equal(lists[0], lists[1]) {
				t.Errorf("to %q: %s %q, want %q", c.keep, what, lists[0], lists[1])
			}
		}
	}
}

// TestModelChangesNothingElse: nodes stay what they are, the given model too, and a second pass finds nothing.
func TestModelChangesNothingElse(t *testing.T) {
	given := example()
	once, err := prune.Model(given, only("loss"))
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(given, example()) {
		t.Error("the given model has changed")
	}
	for _, n := range once.Graph.Node {
		if i := slices.Index(given.Graph.Node, n); i < 0 {
			t.Errorf("node %q is another", n.GetName())
		}
	}
	twice, err := prune.Model(once, only("loss"))
	if err != nil || !proto.Equal(once, twice) {
		t.Errorf("pruned again: %v, %v", twice, err)
	}
	if _, err := prune.Model(given, only()); !errors.Is(err, prune.ErrNothing) {
		t.Errorf("to no output: %v", err)
	}
}
