package ortgraphs

import (
	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// WeightedSum returns the graph that adds the value of a batch to a sum over batches, f32 scalars:
//
//	sum_out = (first ? 0 : sum) + (weight = 0 ? 0 : weight * value)
//
// A batch without weight adds nothing, whatever its value is. sum_out may lie where sum does.
func WeightedSum() ([]byte, error) {
	f32, flag := onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_BOOL
	return marshalGraph(&onnxpb.GraphProto{
		Name: proto.String("weighted_sum"),
		Input: []*onnxpb.ValueInfoProto{
			declared("sum", f32), declared("value", f32), declared("weight", f32), declared("first", flag),
		},
		Initializer: []*onnxpb.TensorProto{number("zero", 0)},
		Output:      []*onnxpb.ValueInfoProto{declared("sum_out", f32)},
		Node: []*onnxpb.NodeProto{
			operation("Where", "before", "first", "zero", "sum"),
			operation("Equal", "empty", "weight", "zero"),
			operation("Mul", "product", "weight", "value"),
			operation("Where", "part", "empty", "zero", "product"),
			operation("Add", "sum_out", "before", "part"),
		},
	})
}

// Weigh returns the graph that multiplies the gradients of a batch, a flat vector in f32 or bf16, by the batch's
// weight, an f32 scalar:
//
//	weighted = weight = 0 or weight * grads = 0 ? 0 : weight * grads
//
// It is the accumulation of one batch: no product is -0, as in a sum that begins at 0. Of a batch without weight every
// product is 0, whatever the gradient is. In bf16 the product is computed in f32 and rounded once. It is elementwise,
// so weighted may lie where grads does.
func Weigh(bf16 bool) ([]byte, error) {
	f32 := onnxpb.TensorProto_FLOAT
	g := &onnxpb.GraphProto{
		Name:        proto.String("weigh"),
		Input:       []*onnxpb.ValueInfoProto{declared("grads", f32, "N"), declared("weight", f32)},
		Initializer: []*onnxpb.TensorProto{number("zero", 0)},
		Output:      []*onnxpb.ValueInfoProto{declared("weighted", f32, "N")},
		Node: []*onnxpb.NodeProto{
			operation("Mul", "product", "grads", "weight"),
			operation("Equal", "nothing", "product", "zero"),
			operation("Equal", "empty", "weight", "zero"),
			operation("Or", "none", "nothing", "empty"),
			operation("Where", "weighted", "none", "zero", "product"),
		},
	}
	if bf16 {
		g.Name = proto.String("weigh_bf16")
		widenInput(g, []string{"grads"})
		g.Node[len(g.Node)-1].Output[0] = "weighted_f32"
		g.Output[0].Type.GetTensorType().ElemType = elementType(onnxpb.TensorProto_BFLOAT16)
		g.Node = append(g.Node, castNode("weighted_f32", "weighted", onnxpb.TensorProto_BFLOAT16))
	}
	return marshalGraph(g)
}

// Deviation returns the graph of how far a rank is from rank 0, over flat f32 vectors, times its rows, an f32 scalar:
//
//	deviation = own = lead or rows = 0 ? 0 : rows * (own - lead)
//
// Equal values deviate by 0, also if they are infinite, and so does a rank without rows. It is elementwise, so
// deviation may lie where own does.
func Deviation() ([]byte, error) {
	f32 := onnxpb.TensorProto_FLOAT
	return marshalGraph(&onnxpb.GraphProto{
		Name: proto.String("deviation"),
		Input: []*onnxpb.ValueInfoProto{declared("own", f32, "N"), declared("lead", f32, "N"), declared("rows",
			f32)},
		Initializer: []*onnxpb.TensorProto{number("zero", 0)},
		Output:      []*onnxpb.ValueInfoProto{declared("deviation", f32, "N")},
		Node: []*onnxpb.NodeProto{
			operation("Equal", "same", "own", "lead"),
			operation("Equal", "empty", "rows", "zero"),
			operation("Or", "none", "same", "empty"),
			operation("Sub", "difference", "own", "lead"),
			operation("Mul", "weighted", "difference", "rows"),
			operation("Where", "deviation", "none", "zero", "weighted"),
		},
	})
}

// MeanOfRanks returns the graph of the mean over the ranks, from the sums of their deviations and of their rows:
//
//	mean = lead + deviation / max(rows, 1)
//
// It is elementwise, so mean may lie where deviation does.
func MeanOfRanks() ([]byte, error) {
	f32 := onnxpb.TensorProto_FLOAT
	return marshalGraph(&onnxpb.GraphProto{
		Name: proto.String("mean_of_ranks"),
		Input: []*onnxpb.ValueInfoProto{
			declared("deviation", f32, "N"), declared("lead", f32, "N"), declared("rows", f32),
		},
		Initializer: []*onnxpb.TensorProto{number("one", 1)},
		Output:      []*onnxpb.ValueInfoProto{declared("mean", f32, "N")},
		Node: []*onnxpb.NodeProto{
			operation("Max", "count", "rows", "one"),
			operation("Div", "part", "deviation", "count"),
			operation("Add", "mean", "lead", "part"),
		},
	})
}

// number is an f32 scalar.
func number(name string, v float32) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{v},
	}
}
