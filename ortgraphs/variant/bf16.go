package variant

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func cast(from, to string, t onnxpb.TensorProto_DataType) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to},
		Attribute: []*onnxpb.AttributeProto{
			{Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(t))},
		}}
}

func takeBF16(g *onnxpb.GraphProto, name string) {
	for _, n := range g.Node {
		for i := range n.Input {
			if n.Input[i] == name {
				n.Input[i] = name + ".f32"
			}
		}
	}
	g.Node = slices.Insert(g.Node, 0, cast(name, name+".f32", onnxpb.TensorProto_FLOAT))
	declare(g.Input, name)
}

func giveBF16(g *onnxpb.GraphProto, name string) {
	for _, n := range g.Node {
		for _, names := range [][]string{n.Input, n.Output} {
			for i := range names {
				if names[i] == name {
					names[i] = name + ".f32"
				}
			}
		}
	}
	g.Node = append(g.Node, cast(name+".f32", name, onnxpb.TensorProto_BFLOAT16))
	declare(g.Output, name)
}

func declare(list []*onnxpb.ValueInfoProto, name string) {
	i := slices.IndexFunc(list, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == name })
	list[i].Type.GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_BFLOAT16))
}
