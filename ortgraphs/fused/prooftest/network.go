package prooftest

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// network makes up a deep network that amplifies roundings: norms that a style scales and shifts, and large weights.
type network struct {
	*rand.Rand
	graph *onnxpb.GraphProto
	kind  onnxpb.TensorProto_DataType
}

const (
	rows, channels, frames, layers = 2, 16, 24, 40
	mask                           = "mask" // the input that is 0 or 1
)

// newNetwork is the same for the same seed.
func newNetwork(seed uint64, kind onnxpb.TensorProto_DataType) *onnxpb.ModelProto {
	n := &network{rand.New(rand.NewPCG(seed, 9)), &onnxpb.GraphProto{Name: proto.String("deep")}, kind}
	n.graph.Input = []*onnxpb.ValueInfoProto{
		n.value("x", rows, channels, frames), n.value("style", rows, channels, 1), n.value(mask, rows, 1, frames),
		n.value("weights", channels, channels),
	}
	x := "x"
	for range layers {
		x = n.layer(x)
	}
	n.graph.Output = []*onnxpb.ValueInfoProto{n.value(x, rows, channels, frames)}
	return n.model()
}

func (n *network) model() *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: n.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

func (n *network) value(name string, shape ...int64) *onnxpb.ValueInfoProto {
	dims := &onnxpb.TensorShapeProto{}
	for _, d := range shape {
		dims.Dim = append(dims.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(n.kind)), Shape: dims}}}}
}

func (n *network) add(op string, in ...string) string {
	out := fmt.Sprintf("v%d", len(n.graph.Node))
	n.graph.Node = append(n.graph.Node, &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}})
	return out
}

// sine is computed in f32: ONNX has none in bf16.
func (n *network) sine(x string) string {
	if n.kind == onnxpb.TensorProto_FLOAT {
		return n.add("Sin", x)
	}
	return n.cast(n.add("Sin", n.cast(x, onnxpb.TensorProto_FLOAT)), n.kind)
}

func (n *network) cast(x string, to onnxpb.TensorProto_DataType) string {
	out := n.add("Cast", x)
	n.graph.Node[len(n.graph.Node)-1].Attribute = []*onnxpb.AttributeProto{{
		Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(to))}}
	return out
}

func (n *network) number(x float32) string {
	name := fmt.Sprintf("c%d", len(n.graph.Initializer))
	t := &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(n.kind)), FloatData: []float32{x}}
	if n.kind == onnxpb.TensorProto_BFLOAT16 {
		bits := shapes.BF16(x)
		t.FloatData, t.RawData = nil, []byte{byte(bits), byte(bits >> 8)}
	}
	n.graph.Initializer = append(n.graph.Initializer, t)
	return name
}

func (n *network) mean(x string, axes ...int64) string { return n.reduce("ReduceMean", x, axes) }
func (n *network) sum(x string, axes ...int64) string  { return n.reduce("ReduceSum", x, axes) }

func (n *network) reduce(op, x string, axes []int64) string {
	name := fmt.Sprintf("c%d", len(n.graph.Initializer))
	n.graph.Initializer = append(n.graph.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)),
		Dims: []int64{int64(len(axes))}, Int64Data: axes})
	return n.add(op, x, name)
}

// layer is a norm with AdaIN, a function, and sometimes a mask, a product, or the gradient of a norm.
func (n *network) layer(x string) string {
	axis := int64(1 + n.IntN(2))
	centered := n.add("Sub", x, n.mean(x, axis))
	deviation := n.add("Sqrt", n.add("Add", n.mean(n.add("Mul", centered, centered), axis), n.number(1e-3)))
	y := n.add("Div", centered, deviation)
	if n.IntN(4) == 0 { // what the gradient of a norm subtracts
		y = n.add("Sub", x, n.add("Mul", y, n.mean(n.add("Mul", x, y), axis)))
	}
	scale := n.add("Add", n.number(1), n.add("Mul", "style", n.number(float32(n.NormFloat64()))))
	y = n.add("Add", n.add("Mul", y, scale), n.add("Mul", "style", n.number(float32(5*n.NormFloat64()))))
	switch n.IntN(4) {
	case 0:
		y = n.add("Tanh", n.add("Mul", y, n.number(4)))
	case 1:
		s := n.sine(n.add("Mul", y, n.number(3)))
		y = n.add("Add", y, n.add("Mul", s, s))
	case 2:
		y = n.add("Mul", y, n.add("Sigmoid", n.add("Mul", y, n.number(6))))
	}
	if n.IntN(2) == 0 {
		y = n.add("Mul", y, mask)
	}
	if n.IntN(2) == 0 {
		y = n.add("MatMul", "weights", y)
	}
	if n.IntN(2) == 0 {
		y = n.add("Add", y, x)
	}
	return y
}
