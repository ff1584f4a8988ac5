package ortgraphs

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// OptimizerBF16 returns Optimizer(name) for gradients in bf16, which are cast to f32 first, and for an update with
// copies: the output copy_out is param_out in bf16, rounded to nearest. Either may be false.
func OptimizerBF16(name string, gradients, copies bool) ([]byte, error) {
	data, err := Optimizer(name)
	if err != nil || !gradients && !copies {
		return data, err
	}
	model, err := parseModel(data)
	if err != nil {
		return nil, fmt.Errorf("optimizer graph %s: %w", name, err)
	}
	if gradients {
		widenInput(model.Graph, []string{"grad", "grads"})
	}
	if copies {
		narrowOutput(model.Graph, "param_out", "copy_out")
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(model)
}

// widenInput makes an input bf16 and casts it to the f32 that the nodes use.
func widenInput(g *onnxpb.GraphProto, names []string) {
	i := slices.IndexFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return slices.Contains(names, v.GetName()) })
	name := g.Input[i].GetName()
	wide := name + "_f32"
	for _, n := range g.Node {
		for at, used := range n.Input {
			if used == name {
				n.Input[at] = wide
			}
		}
	}
	g.Input[i].Type.GetTensorType().ElemType = elementType(onnxpb.TensorProto_BFLOAT16)
	g.Node = slices.Insert(g.Node, 0, castNode(name, wide, onnxpb.TensorProto_FLOAT))
}

// narrowOutput adds an output that is another output in bf16.
func narrowOutput(g *onnxpb.GraphProto, of, name string) {
	i := slices.IndexFunc(g.Output, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == of })
	narrow := proto.Clone(g.Output[i]).(*onnxpb.ValueInfoProto)
	narrow.Name = proto.String(name)
	narrow.Type.GetTensorType().ElemType = elementType(onnxpb.TensorProto_BFLOAT16)
	g.Output = append(g.Output, narrow)
	g.Node = append(g.Node, castNode(of, name, onnxpb.TensorProto_BFLOAT16))
}

func castNode(from, to string, t onnxpb.TensorProto_DataType) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to},
		Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(t)),
		}},
	}
}

func elementType(t onnxpb.TensorProto_DataType) *int32 { return proto.Int32(int32(t)) }
