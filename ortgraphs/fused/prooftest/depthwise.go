package prooftest

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Depthwise is a graph with a depthwise convolution and its gradients, in f32 or bf16.
type Depthwise struct {
	Compiler fused.Compiler
	Session  ort.SessionConfig // as in Deep
	Short    bool
}

// taps, before and behind are those of the convolution.
const taps, before, behind = 5, 3, 1

// Check proves the kernels of depthwise convolutions, and returns their number and the faults.
func (c Depthwise) Check(t *testing.T) (proved int, faults []error) {
	t.Helper()
	return proveModel(t, newDepthwise(c.Short), c.Compiler, c.Session, 4, "depthwise taps")
}

// newDepthwise has them as the exporter writes them.
func newDepthwise(short bool) *onnxpb.ModelProto {
	n := &network{nil, &onnxpb.GraphProto{Name: proto.String("depthwise")}, onnxpb.TensorProto_FLOAT}
	n.graph.Input = []*onnxpb.ValueInfoProto{
		n.value("x", rows, frames, channels), n.value("dy", rows, frames, channels), n.value("w", taps, channels),
	}
	narrow := func(x string) string { return x }
	if short {
		narrow = func(x string) string { return n.cast(x, onnxpb.TensorProto_BFLOAT16) }
	}
	wide := func(x string) string { return n.cast(x, onnxpb.TensorProto_FLOAT) }
	x := n.add("Pad", wide(narrow(n.add("Tanh", "x"))), n.integers(0, before, 0, 0, behind, 0))
	dy := n.add("Tanh", "dy")
	var y, dx string
	var dw []string
	for k := range int64(taps) {
		w := n.add("Slice", "w", n.integers(k), n.integers(k+1), n.integers(0))
		window := n.add("Slice", x, n.integers(k), n.integers(k+frames), n.integers(1))
		one := n.add("Mul", window, w)
		back := narrow(n.add("Pad", n.add("Mul", dy, w), n.integers(0, k, 0, 0, taps-1-k, 0)))
		if k > 0 {
			one, back = n.add("Add", y, one), n.add("Add", dx, back)
		}
		y, dx = one, back
		dw = append(dw, n.sum(n.add("Mul", dy, window), 0, 1))
	}
	dx = wide(n.add("Slice", dx, n.integers(before), n.integers(before+frames), n.integers(1)))
	for _, out := range append(dw, n.add("Sigmoid", y), n.add("Mul", dx, "x")) {
		n.graph.Output = append(n.graph.Output, n.value(n.add("Neg", out), rows, frames, channels))
	}
	for _, v := range n.graph.Output[:taps] {
		v.Type = n.value("", 1, 1, channels).Type
	}
	return n.model()
}

func (n *network) integers(list ...int64) string {
	name := "i" + n.number(0)
	n.graph.Initializer[len(n.graph.Initializer)-1] = &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)),
		Dims: []int64{int64(len(list))}, Int64Data: list,
	}
	return name
}
