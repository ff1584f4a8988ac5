package steady_test

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/ortgraphs/steady"
)

// TestSums: a rewritten sum has the same bits with any number of threads, and those that it has with one thread
// otherwise.
func TestSums(t *testing.T) {
	for _, tt := range []struct {
		shape, axes []int64
	}{
		{[]int64{2, 160, 96}, []int64{1}}, {[]int64{5, 33, 7}, []int64{-2}}, {[]int64{3, 4, 50, 6}, []int64{1, 2}},
		{[]int64{2, 3, 80, 24}, []int64{2}}, {[]int64{4, 3, 500}, []int64{0, 2}},
		{[]int64{3, 5, 7, 40}, []int64{0, 2, 3}},
	} {
		for _, op := range []string{"ReduceSum", "ReduceMean"} {
			for _, keep := range []int64{0, 1} {
				name := fmt.Sprintf("%s of %v over %v, keepdims %d", op, tt.shape, tt.axes, keep)
				model, r := sumModel(t, op, tt.shape, tt.axes, keep)
				want := bits(t, model, r, 1, 1)["y"]
				rewritten, err := steady.Rewrite(model, []steady.Bucket{{}})
				if err != nil || rewritten.Changed != 1 || rewritten.Unproven != "" {
					t.Fatalf("%s: %d nodes, %q, %v", name, rewritten.Changed, rewritten.Unproven, err)
				}
				for _, threads := range []int{1, 2, 4, 16} {
					if got := bits(t, rewritten.Model, r, 1, threads)["y"]; !bytes.Equal(got, want) {
						t.Errorf("%s: other bits with %d threads", name, threads)
					}
				}
			}
		}
	}
}

func sumModel(t *testing.T, op string, shape, axes []int64, keep int64) ([]byte, *shapes.Result) {
	t.Helper()
	var result []int64
	for i, d := range shape {
		switch reduced := contains(axes, int64(i), int64(len(shape))); {
		case !reduced:
			result = append(result, d)
		case keep != 0:
			result = append(result, 1)
		}
	}
	list := &onnxpb.NodeProto{
		OpType: proto.String("Constant"), Output: []string{"axes"}, Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("value_ints"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: axes,
		}},
	}
	return model(t, shape, result, list, &onnxpb.NodeProto{
		OpType: proto.String(op), Input: []string{"x", "axes"}, Output: []string{"y"},
		Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("keepdims"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(keep),
		}},
	})
}

// model is a graph that makes y of x.
func model(t *testing.T, shape, result []int64, nodes ...*onnxpb.NodeProto) ([]byte, *shapes.Result) {
	t.Helper()
	float := func(name string, dims []int64) *onnxpb.ValueInfoProto {
		s := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			s.Dim = append(s.Dim,
				&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
		}
		return &onnxpb.ValueInfoProto{
			Name: proto.String(name),
			Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: s,
			}}},
		}
	}
	m := &onnxpb.ModelProto{
		IrVersion:   proto.Int64(9),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("g"), Input: []*onnxpb.ValueInfoProto{float("x", shape)},
			Output: []*onnxpb.ValueInfoProto{float("y", result)}, Node: nodes,
		},
	}
	r, err := shapes.Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data, r
}

func contains(axes []int64, axis, rank int64) bool {
	for _, a := range axes {
		if (a+rank)%rank == axis {
			return true
		}
	}
	return false
}
