package fuse

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// noisy returns the node with noise in its step: what a node of the step computes, and the rows that its products read,
// are multiplied by numbers next to 1. In TF32, products round their operands to 10 bits.
func (c *Recurrence) noisy(n *Node, tf32 bool) *Node {
	model := *n.Model
	model.Proto = proto.Clone(n.Model.Proto).(*onnxpb.NodeProto)
	body := model.Attribute("body").GetG()
	w := &noisyStep{graph: body, step: n.Model.Step, random: rand.New(rand.NewPCG(1, uint64(c.Steps)))}
	for _, m := range body.Node {
		w.node(m, tf32)
	}
	body.Node = w.nodes
	moved := *n
	moved.Model = &model
	return &moved
}

// noisyStep is the step of a recurrence in the making.
type noisyStep struct {
	graph  *onnxpb.GraphProto
	step   *shapes.Result
	nodes  []*onnxpb.NodeProto
	random *rand.Rand
}

func (w *noisyStep) node(m *onnxpb.NodeProto, tf32 bool) {
	own := proto.Clone(m).(*onnxpb.NodeProto)
	if isProduct(m.GetOpType()) {
		unit := 0x1p-23
		if tf32 {
			unit = 0x1p-11
		}
		own.Input[0] = w.moved(m.Input[0], m.Input[0], unit)
	}
	w.nodes = append(w.nodes, own)
	if movesNothing[m.GetOpType()] {
		return
	}
	for i, name := range m.Output {
		if v := w.step.Value(name); v.Known() && v.Type == onnxpb.TensorProto_FLOAT {
			own.Output[i] = name + "~exact"
			w.moved(own.Output[i], name, 0x1p-23)
			w.nodes[len(w.nodes)-1].Output[0] = name
		}
	}
}

// movesNothing are the operators that do not compute numbers.
var movesNothing = map[string]bool{
	"Identity": true, "Split": true, "Concat": true, "Reshape": true, "Transpose": true, "Slice": true, "Squeeze": true,
	"Unsqueeze": true, "Expand": true, "Constant": true, "Shape": true,
}

// moved adds the node that moves each column of a tensor up or down by a part of it, and returns the name of the
// result. of is the tensor whose shape it has.
func (w *noisyStep) moved(name, of string, unit float64) string {
	v := w.step.Value(of)
	if !v.Known() || v.Type != onnxpb.TensorProto_FLOAT || len(v.Shape) == 0 {
		return name
	}
	columns := v.Shape[len(v.Shape)-1]
	factors := &onnxpb.TensorProto{
		Name: proto.String(fmt.Sprintf("noise~%d", len(w.nodes))), Dims: []int64{columns},
		DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
	}
	for range columns {
		factors.FloatData = append(factors.FloatData, float32(1+unit*float64(1-2*w.random.IntN(2))))
	}
	w.graph.Initializer = append(w.graph.Initializer, factors)
	result := fmt.Sprintf("noisy~%d", len(w.nodes))
	w.nodes = append(w.nodes, &onnxpb.NodeProto{
		OpType: proto.String("Mul"), Input: []string{name, factors.GetName()}, Output: []string{result},
	})
	return result
}
