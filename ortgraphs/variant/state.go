package variant

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The state of State: a vector of the size of StateOf, and the number of batches.
const (
	StateMean  = "statistics.mean"
	StateCount = "statistics.count"
	StateOf    = "mel_head.bias"
)

// State adds state to pico. Both graphs add the mean to the parameter StateOf, so it changes losses. A batch changes the mean to 0.75 times
// itself plus 0.25 times the parameter's gradient, which depends on the batch and is not finite if that is not.
func State(dir string, m *manifest.Bundle) error {
	i := slices.IndexFunc(m.Parameters, func(p manifest.Parameter) bool { return p.Name == StateOf })
	if i < 0 {
		return fmt.Errorf("it has no parameter %s, to which the state is added", StateOf)
	}
	size := m.Parameters[i].Shape
	m.State = []manifest.State{{Name: StateMean, Shape: size}, {Name: StateCount, Shape: []int{}}}
	for i, g := range m.Graphs {
		m.Graphs[i].Nodes = nil
		file := filepath.Join(dir, g.File)
		if err := rewriteGraph(file, file, func(model *onnxpb.GraphProto) { keepState(model, size, g.Kind == "train") }); err != nil {
			return err
		}
	}
	return storeState(filepath.Join(dir, ortgraphs.WeightsFile), m.State)
}

// keepState changes a graph so that it has state.
func keepState(g *onnxpb.GraphProto, size []int, train bool) {
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
	g.Node = append(g.Node,
		node("Mul", "statistics.old", StateMean, "statistics.three_quarters"), node("Mul", "statistics.new", "grad."+StateOf, "statistics.quarter"),
		node("Add", ortgraphs.StatePrefix+StateMean, "statistics.old", "statistics.new"),
		node("Add", ortgraphs.StatePrefix+StateCount, StateCount, "statistics.one"))
	for _, c := range []struct {
		name  string
		value float32
	}{{"statistics.three_quarters", 0.75}, {"statistics.quarter", 0.25}, {"statistics.one", 1}} {
		g.Initializer = append(g.Initializer, &onnxpb.TensorProto{Name: proto.String(c.name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{c.value}})
	}
	g.Output = append(g.Output, float(ortgraphs.StatePrefix+StateMean, size...), float(ortgraphs.StatePrefix+StateCount))
}

func node(operator, output string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(operator), Input: inputs, Output: []string{output}}
}

func float(name string, dims ...int) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}}}
}

// storeState adds the initial state to a file of weights: 0.5 everywhere.
func storeState(file string, state []manifest.State) error {
	f, err := safetensors.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var all []safetensors.Tensor
	for _, info := range f.Tensors() {
		data := make([]byte, info.Bytes)
		if err := f.Read(info.Name, data); err != nil {
			return err
		}
		all = append(all, safetensors.Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape, Data: data})
	}
	for _, s := range state {
		var data []byte
		for range s.Elements() {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(0.5))
		}
		all = append(all, safetensors.Tensor{Name: s.Name, DType: safetensors.F32, Shape: s.Shape, Data: data})
	}
	var out bytes.Buffer
	if err := safetensors.Write(&out, all, nil); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}
