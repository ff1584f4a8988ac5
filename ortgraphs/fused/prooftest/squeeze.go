package prooftest

import (
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// The sizes of what newSqueeze returns.
const squeezed, width, times, norms = 8, 8, 448, 3

// newSqueeze makes up batch norms with squeeze and excitation behind them, and sums that their gradients have. Their
// roundings are not independent of each other: the terms of a sum are the same at all times, and its rows cancel
// (bias); a sum is zero, apart from roundings (mean); and gates in bf16 scale whole rows.
func newSqueeze(seed uint64) *onnxpb.ModelProto {
	n := &network{
		rand.New(rand.NewPCG(seed, 11)), &onnxpb.GraphProto{Name: proto.String("squeeze")}, onnxpb.TensorProto_FLOAT,
	}
	n.graph.Input = []*onnxpb.ValueInfoProto{n.value("x", squeezed, width, times), n.value("loss", squeezed, width, 1)}
	n.kind = onnxpb.TensorProto_BFLOAT16
	n.graph.Input = append(n.graph.Input, n.value("gate", squeezed, width, 1))
	n.kind = onnxpb.TensorProto_FLOAT
	var sums []string
	x := "x"
	for range norms {
		centered := n.add("Sub", x, n.mean(x, 0, 2))
		deviation := n.add("Sqrt", n.add("Add", n.mean(n.add("Mul", centered, centered), 0, 2), n.number(1e-5)))
		normal := n.add("Div", centered, deviation)
		gate := n.cast(n.add("Sigmoid", n.add("Mul", "gate", n.short(float32(n.NormFloat64())))), n.kind)
		gradient := n.add("Add", n.add("Mul", normal, n.number(1e-3)), n.add("Sub", "loss", n.mean("loss", 0)))
		scaled := n.add("Mul", gradient, gate)
		sums = append(sums,
			n.sum(gradient, 0, 2), n.sum(scaled, 0, 2), n.sum(n.add("Mul", scaled, normal), 0, 2),
			n.sum(n.add("Neg", n.add("Mul", centered, n.sum(scaled, 0, 2))), 0, 2))
		x = n.add("Add", x, n.add("Mul", normal, gate))
	}
	for _, s := range append(sums, x) {
		n.graph.Output = append(n.graph.Output, n.value(s, 1, width, 1))
	}
	n.graph.Output[len(sums)] = n.value(x, squeezed, width, times)
	return n.model()
}

func (n *network) short(x float32) string {
	n.kind = onnxpb.TensorProto_BFLOAT16
	defer func() { n.kind = onnxpb.TensorProto_FLOAT }()
	return n.number(x)
}
