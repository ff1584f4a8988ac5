package shapes_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// recurrence is a model whose Scan multiplies a state by a matrix from outside and adds an item of a sequence.
func recurrence() *onnxpb.ModelProto {
	float := func(name string, dims ...any) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			switch d := d.(type) {
			case int:
				shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
					Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)},
				})
			case string:
				shape.Dim = append(shape.Dim,
					&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}})
			}
		}
		tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
		return &onnxpb.ValueInfoProto{
			Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
		}
	}
	node := func(op string, out []string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: out}
	}
	named := func(names ...string) (values []*onnxpb.ValueInfoProto) {
		for _, name := range names {
			values = append(values, &onnxpb.ValueInfoProto{Name: proto.String(name)})
		}
		return values
	}
	scan := node("Scan", []string{"last", "all"}, "start", "x")
	scan.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("num_scan_inputs"), I: proto.Int64(1)},
		{Name: proto.String("body"), G: &onnxpb.GraphProto{
			Input: named("state", "item"), Output: named("after", "result"),
			Node: []*onnxpb.NodeProto{node("MatMul", []string{"product"}, "state",
				"w"), node("Add", []string{"after"}, "product", "item"), node(
				"Concat", []string{"result"}, "after", "item")},
		}},
	}
	scan.Attribute[1].G.Node[2].Attribute = []*onnxpb.AttributeProto{{Name: proto.String("axis"), I: proto.Int64(1)}}
	return &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{float("start", "B", 4), float("x", "T", "B", 4), float("w", 4, 4)},
		Output: named("last", "all"),
		Node:   []*onnxpb.NodeProto{scan},
	}}
}

// TestScan: results have the shapes of one step's, along time; the nodes of the body count once for each step.
func TestScan(t *testing.T) {
	r, err := shapes.Infer(recurrence(), shapes.Sizes{"B": 3, "T": 7})
	if err != nil {
		t.Fatal(err)
	}
	last, all := r.Value("last").Shape, r.Value("all").Shape
	if !slices.Equal(last, []int64{3, 4}) || !slices.Equal(all, []int64{7, 3, 8}) {
		t.Errorf("the last state has the shape %v, all results %v", last, all)
	}
	if len(r.Nodes) != 1 {
		t.Errorf("%d nodes: those of the body are among them", len(r.Nodes))
	}
	// Of each step: a product, 12 sums, 24 elements that are joined, and at one time the last 36 numbers.
	if cost := r.Cost(); cost.FLOPs != 7*(2*3*4*4+12+24) || cost.Unknown != 0 || cost.Peak != 4*(12+24) {
		t.Errorf("the cost is %+v", cost)
	}
}

// TestScanErrors: a body that cannot run names its node, and one that is not understood leaves shapes unknown.
func TestScanErrors(t *testing.T) {
	model := recurrence()
	model.Graph.Input[2].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{
		DimValue: 5,
	}
	if _, err := shapes.Infer(model, shapes.Sizes{"B": 3, "T": 7}); err == nil ||
		!strings.Contains(err.Error(), "the node of last > the node of product (MatMul)") {
		t.Errorf("a product of unequal sizes in the body: %v", err)
	}
	for name, change := range map[string]func(scan *onnxpb.NodeProto){
		"no body":        func(scan *onnxpb.NodeProto) { scan.Attribute = scan.Attribute[:1] },
		"more sequences": func(scan *onnxpb.NodeProto) { scan.Attribute[0].I = proto.Int64(3) },
		"no sequence":    func(scan *onnxpb.NodeProto) { scan.Attribute[0].I = proto.Int64(0) },
		"fewer inputs": func(scan *onnxpb.NodeProto) {
			scan.Attribute[1].G.Input = scan.Attribute[1].G.Input[:1]
		},
		"fewer outputs":      func(scan *onnxpb.NodeProto) { scan.Attribute[1].G.Output = nil },
		"along another axis": func(scan *onnxpb.NodeProto) { scan.Attribute = append(scan.Attribute, axes(1)) },
		"an output of nothing": func(scan *onnxpb.NodeProto) {
			scan.Attribute[1].G.Output[1].Name = proto.String("absent")
		},
	} {
		model := recurrence()
		change(model.Graph.Node[0])
		r, err := shapes.Infer(model, shapes.Sizes{"B": 3, "T": 7})
		if err != nil || r.Value("all").Known() {
			t.Errorf("%s: %v, and the shape %v", name, err, r.Value("all").Shape)
		}
	}
}

func axes(axis int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String("scan_input_axes"), Ints: []int64{axis}}
}
