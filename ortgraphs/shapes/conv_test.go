package shapes_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestConvolutions: the shapes are those of PyTorch's conv1d and conv_transpose1d.
func TestConvolutions(t *testing.T) {
	ints := func(name string, values ...int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: values}
	}
	group := &onnxpb.AttributeProto{
		Name: proto.String("group"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(2),
	}
	for _, c := range []struct {
		op      string
		domain  string
		kernel  []int64
		options []*onnxpb.AttributeProto
		want    []int64 // of [2, 6, 10]; nil if it is an error
	}{
		{
			"Conv", "", []int64{4, 6, 3}, []*onnxpb.AttributeProto{ints("strides", 2), ints("pads", 1, 1)},
			[]int64{2, 4, 5},
		},
		{
			"FusedConv", "com.microsoft", []int64{4, 6, 7}, []*onnxpb.AttributeProto{ints("pads", 3, 3)},
			[]int64{2, 4, 10},
		},
		{
			"ConvTranspose", "", []int64{6, 3, 16}, []*onnxpb.AttributeProto{ints("strides", 8), ints("pads", 4, 4)},
			[]int64{2, 3, 80},
		},
		{
			"ConvTranspose", "", []int64{6, 3, 5},
			[]*onnxpb.AttributeProto{ints("strides", 3), ints("output_padding", 1), ints("dilations", 2), group},
			[]int64{2, 6, 37},
		},
		{"ConvTranspose", "", []int64{4, 3, 5}, nil, nil},
	} {
		input := func(name string, dims []int64) *onnxpb.ValueInfoProto {
			shape := &onnxpb.TensorShapeProto{}
			for _, d := range dims {
				shape.Dim = append(shape.Dim,
					&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
			}
			tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
			return &onnxpb.ValueInfoProto{
				Name: proto.String(name),
				Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
			}
		}
		r, err := shapes.Infer(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Input: []*onnxpb.ValueInfoProto{input("x", []int64{2, 6, 10}), input("w", c.kernel)},
			Node: []*onnxpb.NodeProto{{
				OpType: proto.String(c.op), Domain: proto.String(c.domain), Input: []string{"x", "w"},
				Output: []string{"y"}, Attribute: c.options,
			}},
			Output: []*onnxpb.ValueInfoProto{{Name: proto.String("y")}},
		}}, shapes.Sizes{})
		switch {
		case c.want == nil:
			if err == nil {
				t.Errorf("%s of %d: no error", c.op, c.kernel)
			}
		case err != nil:
			t.Errorf("%s of %d: %v", c.op, c.kernel, err)
		case !slices.Equal(r.Value("y").Shape, c.want):
			t.Errorf("%s of %d: %d, want %d", c.op, c.kernel, r.Value("y").Shape, c.want)
		}
	}
}
