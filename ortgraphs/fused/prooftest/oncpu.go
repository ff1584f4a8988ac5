package prooftest

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// onCPU makes nodes compute in f32 what they do in bf16, and round it: ONNX Runtime's CPU provider has no others.
// Sigmoid rounds each step, as that of its CUDA provider does. tf32 makes products round their operands to 10 bits:
// x·(2¹³+1) - (x·(2¹³+1) - x) is x without its last 13 bits, rounded (T. J. Dekker, A floating-point technique for
// extending the available precision, 1971).
func onCPU(t *testing.T, model []byte, sizes shapes.Sizes, tf32 bool) []byte {
	t.Helper()
	m := &onnxpb.ModelProto{}
	must(t, proto.Unmarshal(model, m))
	r, err := shapes.Infer(m, sizes)
	must(t, err)
	short := map[string]bool{}
	for _, v := range r.Inputs {
		short[v.Name] = v.Type == onnxpb.TensorProto_BFLOAT16
	}
	for _, i := range m.Graph.Initializer {
		short[i.GetName()] = i.GetDataType() == int32(onnxpb.TensorProto_BFLOAT16)
	}
	for _, n := range r.Nodes {
		for _, v := range n.Out {
			short[v.Name] = v.Type == onnxpb.TensorProto_BFLOAT16
		}
	}
	var nodes []*onnxpb.NodeProto
	cast := func(from, to string, kind onnxpb.TensorProto_DataType) {
		nodes = append(nodes, &onnxpb.NodeProto{
			OpType: proto.String("Cast"), Input: []string{from}, Output: []string{to},
			Attribute: []*onnxpb.AttributeProto{{
				Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(kind))}}})
	}
	add := func(op, out string, in ...string) string {
		nodes = append(nodes, &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}})
		return out
	}
	for name, x := range map[string]float32{"split~": 1<<13 + 1, "zero~": 0, "one~": 1} {
		m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{
			Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{x}})
	}
	for i, n := range m.Graph.Node {
		if op := n.GetOpType(); tf32 && (op == "MatMul" || op == "Gemm") {
			for j, x := range n.Input[:2] {
				name := fmt.Sprintf("%s~tf32_%d_%d", x, i, j)
				large := add("Mul", name+"/large", x, "split~")
				n.Input[j] = add("Sub", name, large, add("Sub", name+"/rest", large, x))
			}
		}
		if n.GetDomain() == ort.KernelDomain || n.GetOpType() == "Cast" {
			nodes = append(nodes, n)
			continue
		}
		if n.GetOpType() == "Sigmoid" && short[n.Output[0]] {
			sigmoid(n, add, cast)
			continue
		}
		for j, name := range n.Input {
			if short[name] {
				n.Input[j] = fmt.Sprintf("%s~wide%d_%d", name, i, j)
				cast(name, n.Input[j], onnxpb.TensorProto_FLOAT)
			}
		}
		nodes = append(nodes, n)
		for j, name := range n.Output {
			if short[name] {
				n.Output[j] = name + "~wide"
				cast(n.Output[j], name, onnxpb.TensorProto_BFLOAT16)
			}
		}
	}
	m.Graph.Node = nodes
	wide, err := proto.Marshal(m)
	must(t, err)
	return wide
}

// sigmoid writes 1 / (1 + exp(-|x|)) for positive numbers, and 1 minus that for others.
func sigmoid(
	n *onnxpb.NodeProto, add func(op, out string, in ...string) string,
	cast func(from, to string, kind onnxpb.TensorProto_DataType),
) {
	name := n.Output[0]
	rounded := func(x string) string {
		cast(x, x+"~short", onnxpb.TensorProto_BFLOAT16)
		cast(x+"~short", x+"~rounded", onnxpb.TensorProto_FLOAT)
		return x + "~rounded"
	}
	x := name + "~x"
	cast(n.Input[0], x, onnxpb.TensorProto_FLOAT)
	power := rounded(add("Exp", name+"~exp", add("Neg", name+"~neg", add("Abs", name+"~abs", x))))
	above := rounded(add("Div", name+"~above", "one~", rounded(add("Add", name+"~sum", "one~", power))))
	below := rounded(add("Sub", name+"~below", "one~", above))
	cast(add("Where", name+"~wide", add("Greater", name+"~positive", x, "zero~"), above, below), name,
		onnxpb.TensorProto_BFLOAT16)
}
