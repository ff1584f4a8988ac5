package shapes_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestTopK: both outputs have the number of elements along the axis; more than there are is an error.
func TestTopK(t *testing.T) {
	for _, c := range []struct {
		count int64
		want  []int64
	}{
		{0, []int64{9, 0}},
		{3, []int64{9, 3}},
		{8, []int64{9, 8}},
		{10, nil},
		{-1, nil},
	} {
		dims := []*onnxpb.TensorShapeProto_Dimension{
			{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "T"}},
			{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 8}},
		}
		tensor := &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: &onnxpb.TensorShapeProto{Dim: dims},
		}
		count := &onnxpb.TensorProto{
			Name: proto.String("k"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
			Int64Data: []int64{c.count},
		}
		model := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Input: []*onnxpb.ValueInfoProto{{
				Name: proto.String("x"),
				Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
			}},
			Initializer: []*onnxpb.TensorProto{count},
			Node: []*onnxpb.NodeProto{
				{OpType: proto.String("TopK"), Input: []string{"x", "k"}, Output: []string{"values", "places"}},
			},
		}}
		r, err := shapes.Infer(model, shapes.Sizes{"T": 9})
		if c.want == nil {
			if err == nil {
				t.Errorf("the %d largest of 8: no error", c.count)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		values, places := r.Value("values"), r.Value("places")
		if !slices.Equal(values.Shape, c.want) || !slices.Equal(places.Shape, c.want) ||
			places.Type != onnxpb.TensorProto_INT64 {
			t.Errorf("the %d largest of 8: %v %v and %v %v, want %v", c.count, values.Shape, values.Type, places.Shape,
				places.Type, c.want)
		}
	}
}
