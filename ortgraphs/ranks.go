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
