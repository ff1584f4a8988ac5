package variant

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The state of State: a vector of the size of StateOf, and the number of batches.
const (
	StateMean  = "statistics.mean"
	StateCount = "statistics.count"
	StateOf    = "mel_head.bias"
)

// State adds state to pico. Both graphs add the mean to the parameter StateOf, so it changes losses. A batch moves the
// mean by 0.3 of the way to the mean over its rows of each band of the first input of numbers, padding included. Empty
// rows do not count, and a batch without others leaves the state as it is.
func State(dir string, m *manifest.Bundle) error {
	i := slices.IndexFunc(m.Parameters, func(p manifest.Parameter) bool { return p.Name == StateOf })
	if i < 0 {
		return fmt.Errorf("it has no parameter %s, to which the state is added", StateOf)
	}
	size := m.Parameters[i].Shape
	of := slices.IndexFunc(m.Inputs,
		func(in manifest.TensorSpec) bool { return in.DType == manifest.F32 && in.Lengths != "" })
	if of < 0 {
		return errors.New("it has no f32 input with lengths, whose mean the state is")
	}
	m.State = []manifest.State{{Name: StateMean, Shape: size}, {Name: StateCount, Shape: []int{}}}
	for i, g := range m.Graphs {
		m.Graphs[i].Nodes = nil
		file := filepath.Join(dir, g.File)
		if err := rewriteGraph(file, file, func(model *onnxpb.GraphProto) {
			keepState(model, m.Inputs[of], size, g.Kind == "train")
		}); err != nil {
			return err
		}
	}
	return store(filepath.Join(dir, ortgraphs.WeightsFile), constant(StateMean, size, 0.5),
		constant(StateCount, nil, 0.5))
}

// keepState changes a graph so that it has state.
func keepState(g *onnxpb.GraphProto, of manifest.TensorSpec, size []int, train bool) {
	const sum = StateOf + ".sum"
	for _, n := range g.Node {
		for i := range n.Input {
			if n.Input[i] == StateOf {
				n.Input[i] = sum
			}
		}
	}
	g.Node = slices.Insert(g.Node, 0, node("Add", sum, StateOf, StateMean))
	g.Input = append(g.Input, float(StateMean, size...), float(StateCount))
	if !train {
		return
	}
	const mean, rows, ones, seen = "statistics.new", "statistics.rows", "statistics.ones", "statistics.any"
	g.Node = append(g.Node,
		node("Greater", "statistics.row", of.Lengths, "statistics.nothing"),
		node("Unsqueeze", "statistics.filled", "statistics.row", "statistics.after"),
		node("Where", ones, "statistics.filled", "statistics.one", "statistics.zero"),
		node("ReduceSum", "statistics.all", ones, "statistics.axes"),
		node("Squeeze", rows, "statistics.all", "statistics.axes"), node("Min", seen, rows, "statistics.one"),
		node("Max", "statistics.divisor", rows, "statistics.one"),
		node("ReduceMean", "statistics.bands", of.Name, "statistics.time"),
		node("Where", "statistics.taken", "statistics.filled", "statistics.bands", "statistics.zero"),
		node("ReduceSum", "statistics.summed", "statistics.taken", "statistics.before"),
		node("Squeeze", "statistics.sum", "statistics.summed", "statistics.before"),
		node("Div", mean, "statistics.sum", "statistics.divisor"), node("Sub", "statistics.way", mean, StateMean),
		node("Mul", "statistics.rate", seen, "statistics.part"),
		node("Mul", "statistics.step", "statistics.way", "statistics.rate"),
		node("Add", ortgraphs.StatePrefix+StateMean, StateMean, "statistics.step"),
		node("Add", ortgraphs.StatePrefix+StateCount, StateCount, seen))
	g.Initializer = append(g.Initializer, scalar("statistics.zero", 0), scalar("statistics.one", 1),
		scalar("statistics.part", 0.3), &onnxpb.TensorProto{
			Name: proto.String("statistics.nothing"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT32)),
			Int32Data: []int32{0},
		},
		axes("statistics.after", 1, 2), axes("statistics.axes", 0, 1, 2), axes("statistics.time", 1),
		axes("statistics.before", 0, 1))
	g.Output = append(g.Output, float(ortgraphs.StatePrefix+StateMean, size...),
		float(ortgraphs.StatePrefix+StateCount))
}

func node(operator, output string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(operator), Input: inputs, Output: []string{output}}
}

func scalar(name string, v float32) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{v},
	}
}

func axes(name string, list ...int64) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), Dims: []int64{int64(len(list))},
		DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Int64Data: list,
	}
}

func float(name string, dims ...int) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim,
			&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
	}
}
