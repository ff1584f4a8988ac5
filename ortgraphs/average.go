package ortgraphs

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Average returns the graph of an exponential moving average over flat f32 vectors:
//
//	average_out = finite ? average + (param - average) * rate : average
//
// rate is an f32 scalar, 1 minus the decay, and finite the flag of a step. It is elementwise, so average_out may lie
// where average does.
func Average() ([]byte, error) {
	f32, flag := onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_BOOL
	g := &onnxpb.GraphProto{
		Name: proto.String("average"),
		Input: []*onnxpb.ValueInfoProto{
			declared("average", f32, "N"), declared("param", f32, "N"), declared("rate", f32), declared("finite", flag),
		},
		Output: []*onnxpb.ValueInfoProto{declared("average_out", f32, "N")},
		Node: []*onnxpb.NodeProto{
			operation("Sub", "difference", "param", "average"),
			operation("Mul", "part", "difference", "rate"),
			operation("Add", "moved", "average", "part"),
			operation("Where", "average_out", "finite", "moved", "average"),
		},
	}
	return marshalGraph(g)
}

// marshalGraph returns the file of a graph that is made here, not exported.
func marshalGraph(g *onnxpb.GraphProto) ([]byte, error) {
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(10), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(20)}},
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(model)
}

func operation(operator, output string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(operator), Input: inputs, Output: []string{output}}
}

// declared is a tensor whose dimensions are symbols.
func declared(name string, t onnxpb.TensorProto_DataType, symbols ...string) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, s := range symbols {
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: s}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: elementType(t), Shape: shape},
		},
	}}
}
