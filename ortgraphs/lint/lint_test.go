package lint_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

const (
	f32 = onnxpb.TensorProto_FLOAT
	i32 = onnxpb.TensorProto_INT32
	i64 = onnxpb.TensorProto_INT64
)

// graph is built node by node. Its inputs are x f32[B, T, 8], lengths i32[B] and mask f32[B, T].
type graph struct{ *onnxpb.GraphProto }

func newGraph() graph {
	g := graph{new(onnxpb.GraphProto)}
	g.input("x", f32, "B", "T", 8)
	g.input("lengths", i32, "B")
	g.input("mask", f32, "B", "T")
	return g
}

func (g graph) input(name string, t shapes.Type, dims ...any) {
	shape := new(onnxpb.TensorShapeProto)
	for _, d := range dims {
		dim := new(onnxpb.TensorShapeProto_Dimension)
		switch d := d.(type) {
		case string:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		case int:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: shape}
	g.Input = append(g.Input, &onnxpb.ValueInfoProto{
		Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
	})
}

// ints adds an i64 constant, a scalar without dims.
func (g graph) ints(name string, dims []int64, values ...int64) {
	g.Initializer = append(g.Initializer,
		&onnxpb.TensorProto{Name: &name, DataType: proto.Int32(int32(i64)), Dims: dims, Int64Data: values})
}

// node adds "out = Op(in, in)"; attributes are name, value pairs.
func (g graph) node(text string, attributes ...any) {
	out, rest, _ := strings.Cut(text, " = ")
	op, in, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
	n := &onnxpb.NodeProto{OpType: &op, Output: strings.Split(out, ", ")}
	if in != "" {
		n.Input = strings.Split(in, ", ")
	}
	for i := 0; i < len(attributes); i += 2 {
		name := attributes[i].(string)
		a := &onnxpb.AttributeProto{Name: &name}
		switch v := attributes[i+1].(type) {
		case int:
			a.I = proto.Int64(int64(v))
		case string:
			a.S = []byte(v)
		case []int64:
			a.Ints = v
		}
		n.Attribute = append(n.Attribute, a)
	}
	g.Node = append(g.Node, n)
}

var trials = []shapes.Sizes{{"B": 3, "T": 50}, {"B": 1, "T": 20}}

// planted are graphs with one fault each; rule, place and reason of the finding begin with want.
var planted = []struct {
	name  string
	build func(g graph)
	want  string // prefixes of rule, place and reason
}{
	{"integer Pad", func(g graph) {
		g.ints("pads", []int64{2}, 0, 1)
		g.node("y = Pad(lengths, pads)")
	}, "cpu-node: the node of y (Pad): the CUDA provider has no kernel for it with i32"},
	{"integer Clip", func(g graph) {
		g.node("y = Clip(lengths)")
	}, "cpu-node: the node of y (Clip): the CUDA provider has no kernel for it with i32"},
	{"no kernel at all", func(g graph) {
		g.node("y = Atan(x)")
	}, "cpu-node: the node of y (Atan): the CUDA provider has no kernel for it"},
	{"mean over a dynamic dimension", func(g graph) {
		g.ints("one", nil, 1)
		g.node("shape = Shape(x)")
		g.node("t = Gather(shape, one)")
		g.node("tf = Cast(t)", "to", int(f32))
		g.ints("axes", []int64{1}, 1)
		g.node("sum = ReduceSum(x, axes)")
		g.node("y = Div(sum, tf)")
	}, "memcpy: the node of y (Div): tf is computed from shapes on the host"},
	{"the same by a Range", func(g graph) {
		g.ints("one", nil, 1)
		g.node("shape = Shape(x)")
		g.node("t = Gather(shape, one)")
		g.node("t1 = Add(t, one)")
		g.node("moved = Range(t, t1, one)")
		g.node("y = Cast(moved)", "to", int(f32))
	}, "cuda-graph: the node of moved (Range): brings a number that is computed from shapes"},
	{"indices from a shape", func(g graph) {
		g.node("shape = Shape(x, )", "start", 1, "end", 2)
		g.node("y = Gather(x, shape)", "axis", 2)
	}, "memcpy: the node of y (Gather): shape is computed from shapes on the host"},
	{"unequal Concat", func(g graph) {
		g.ints("start", []int64{1}, 0)
		g.ints("end", []int64{1}, 1)
		g.ints("axes", []int64{1}, 1)
		g.node("first = Slice(x, start, end, axes)")
		g.node("y = Concat(first, x)", "axis", 1)
	}, "cuda-graph: the node of y (Concat): parts of different sizes"},
	{"Concat of many", func(g graph) {
		g.node("y = Concat(" + strings.Repeat("x, ", 32) + "x)")
		g.Node[0].Attribute = []*onnxpb.AttributeProto{{Name: proto.String("axis"), I: proto.Int64(2)}}
	}, "cuda-graph: the node of y (Concat): 33 inputs"},
	{"unequal Split", func(g graph) {
		g.ints("sizes", []int64{2}, 3, 5)
		g.node("a, b = Split(x, sizes)", "axis", 2)
	}, "cuda-graph: the node of a (Split): parts of different sizes"},
	{"GatherND", func(g graph) {
		g.ints("at", []int64{1, 1}, 0)
		g.node("y = GatherND(x, at)")
	}, "cuda-graph: the node of y (GatherND): its kernel copies a table"},
	{"broadcast MatMul", func(g graph) {
		g.ints("first", []int64{1}, 0)
		g.ints("second", []int64{1}, 1)
		g.node("one = Slice(x, first, second)")
		g.node("t = Transpose(one)", "perm", []int64{0, 2, 1})
		g.node("y = MatMul(x, t)")
	}, "cuda-graph: the node of y (MatMul): broadcasts [3 50 8] by [1 8 50]"},
	{"scatter with an addition", func(g graph) {
		g.ints("at", []int64{1, 1}, 0)
		g.node("u = Identity(mask)")
		g.node("y = ScatterND(mask, at, u)", "reduction", "add")
	}, "non-deterministic: the node of y (ScatterND): adds with atomic operations"},
	{"random numbers", func(g graph) {
		g.node("y = RandomNormalLike(x)")
	}, "non-deterministic: the node of y (RandomNormalLike): draws numbers"},
	{"dropout", func(g graph) {
		g.node("y = Dropout(x, ratio, training)")
	}, "non-deterministic: the node of y (Dropout): draws numbers"},
	{"shape from data", func(g graph) {
		g.node("y = NonZero(x)")
	}, "host-sync: the node of y (NonZero): the shape of its output depends on the data"},
	{"branch", func(g graph) {
		g.node("c = Cast(lengths)", "to", int(onnxpb.TensorProto_BOOL))
		g.node("y = If(c)")
	}, "host-sync: the node of y (If): the host decides"},
	{"shape from the device", func(g graph) {
		g.node("n = Cast(lengths)", "to", int(i64))
		g.node("y = ConstantOfShape(n)")
	}, "host-sync: the node of y (ConstantOfShape): n is computed on the device"},
	{"frozen Reshape", func(g graph) {
		g.ints("shape", []int64{2}, 150, 8)
		g.node("y = Reshape(x, shape)")
	}, "frozen-dimension: the node of y (Reshape): [1 20 8] cannot be reshaped to [150 8] with B 1, T 20"},
	{"frozen mask", func(g graph) {
		g.ints("positions", []int64{1, 50}, make([]int64, 50)...)
		g.node("p = Cast(positions)", "to", int(f32))
		g.node("y = Mul(mask, p)")
	}, "frozen-dimension: the node of y (Mul): the shapes [[1 20] [1 50]] do not match with B 1, T 20"},
	{"large constant", func(g graph) {
		g.ints("table", []int64{512, 512}, make([]int64, 512*512)...)
		g.node("y = Gather(table, lengths)")
	}, "oversized-constant: initializer table: 2.0 MiB of numbers in the graph"},
	{"copy", func(g graph) {
		g.node("y = MemcpyToHost(x)")
	}, "memcpy: the node of y (MemcpyToHost): ONNX Runtime inserted a copy"},
	{"unknown operator", func(g graph) {
		g.node("y = Einsum(x)", "equation", "btd->bd")
	}, "unknown: the node of y (Einsum): the shape of its output cannot be derived"},
}

// TestPlantedFaults: each of these graphs has one fault, at one node.
func TestPlantedFaults(t *testing.T) {
	for _, tt := range planted {
		t.Run(tt.name, func(t *testing.T) {
			g := newGraph()
			tt.build(g)
			findings := lint.Check(&onnxpb.ModelProto{Graph: g.GraphProto}, trials)
			if len(findings) != 1 || !strings.HasPrefix(findings[0].String(), tt.want) || findings[0].Fix == "" {
				t.Errorf("findings: %v\nwant one: %s", findings, tt.want)
			}
		})
	}
}

// TestGoodPatterns: the code that exporters write for shapes, masks and means passes.
func TestGoodPatterns(t *testing.T) {
	g := newGraph()
	g.ints("zero", nil, 0)
	g.ints("one", nil, 1)
	g.ints("minus", []int64{1}, -1)
	g.ints("axes", []int64{1}, 1)
	g.node("shape = Shape(x)")
	g.node("t = Gather(shape, one)")
	g.node("positions = Range(zero, t, one)") // a length is not a number that comes from a shape
	g.node("p32 = Cast(positions)", "to", int(i32))
	g.node("column = Unsqueeze(lengths, axes)")
	g.node("inside = Less(p32, column)")
	g.node("weights = Cast(inside)", "to", int(f32))
	g.node("sum = ReduceSum(x, axes)", "keepdims", 0)
	g.node("count = ReduceSum(weights, axes)")
	g.node("mean = Div(sum, count)")
	g.node("b = Gather(shape, zero)")
	g.node("b1 = Unsqueeze(b, first)")
	g.ints("first", []int64{1}, 0)
	g.node("flat = Concat(b1, minus)", "axis", 0)
	g.node("rows = Reshape(x, flat)")
	g.node("turned = Transpose(x)", "perm", []int64{0, 2, 1})
	g.node("product = MatMul(x, turned)")
	g.node("twice = Concat(x, x)", "axis", 2)
	// Gemm and Sigmoid, fused by ONNX Runtime's optimizer
	g.node("gate = com.microsoft.FusedGemm(rows, rows)", "transB", 1)
	g.node("gated = MatMul(gate, rows)")
	if findings := lint.Check(&onnxpb.ModelProto{Graph: g.GraphProto}, trials); len(findings) > 0 {
		t.Errorf("%v", findings)
	}
}

// TestOwnBundles: the graphs of this repository have no findings.
func TestOwnBundles(t *testing.T) {
	for _, dir := range []string{"../builtin/myxtts-nano", "../builtin/myxtts-multispeaker", "../testdata/pico"} {
		b, err := ortgraphs.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range b.Manifest.Graphs {
			model, err := ortgraphs.ReadModel(filepath.Join(dir, g.File))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range lint.Check(model, lint.Trials(b.Manifest)) {
				t.Errorf("%s/%s: %s", b.Manifest.Name, g.File, f)
			}
		}
	}
}

func ExampleFinding() {
	fmt.Println(lint.Finding{
		Rule: lint.CPUNode, Place: "node encoder/pad", Op: "Pad",
		Reason: "the CUDA provider has no kernel for it with i32", Fix: "compute it in f32 and cast",
	})
	// Output:
	// cpu-node: node encoder/pad (Pad): the CUDA provider has no kernel for it with i32; compute it in f32 and cast
}
