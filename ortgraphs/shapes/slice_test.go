package shapes_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestSlice: the bounds are clamped to the axis, however large they are. Exporters write the largest i64 for "to the
// end" and the smallest for the end of a slice that runs backwards.
func TestSlice(t *testing.T) {
	for _, c := range []struct {
		start, end, step int64
		want             int64
	}{
		{0, 9, 1, 9},
		{1, math.MaxInt64, 1, 8},
		{2, math.MaxInt32, 3, 3},
		{0, -1, 1, 8},
		{-2, math.MaxInt64, 1, 2},
		{-1, math.MinInt64, -1, 9},
		{math.MaxInt64, math.MinInt64, -2, 5},
		{math.MinInt64, math.MaxInt64, 1, 9},
		{5, 5, 1, 0},
	} {
		numbers := func(name string, n int64) *onnxpb.TensorProto {
			return &onnxpb.TensorProto{
				Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
				Int64Data: []int64{n},
			}
		}
		dims := []*onnxpb.TensorShapeProto_Dimension{
			{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "T"}},
		}
		tensor := &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: &onnxpb.TensorShapeProto{Dim: dims},
		}
		model := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Input: []*onnxpb.ValueInfoProto{{
				Name: proto.String("x"),
				Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
			}},
			Initializer: []*onnxpb.TensorProto{
				numbers("start", c.start), numbers("end", c.end), numbers("axis", 0), numbers("step", c.step),
			},
			Node: []*onnxpb.NodeProto{{
				OpType: proto.String("Slice"), Input: []string{"x", "start", "end", "axis", "step"},
				Output: []string{"y"},
			}},
		}}
		r, err := shapes.Infer(model, shapes.Sizes{"T": 9})
		if err != nil {
			t.Fatalf("x[%d:%d:%d]: %v", c.start, c.end, c.step, err)
		}
		if got := r.Value("y"); !got.Known() || got.Shape[0] != c.want {
			t.Errorf("x[%d:%d:%d] of 9 elements has %v, want %d", c.start, c.end, c.step, got.Shape, c.want)
		}
	}
}
