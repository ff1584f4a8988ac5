package fuse

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// noisy returns the node with noise in its step: what a node of the step computes, and the rows that its products read,
// are multiplied by numbers next to 1. In TF32, products round their operands to 10 bits.
func (c *Recurrence) noisy(n *Node, tf32 bool) *Node {
	model := *n.Model
	model.Proto = proto.Clone(n.Model.Proto).(*onnxpb.NodeProto)
	body := model.Attribute("body").GetG()
	w := &noisyStep{
		graph: body, step: n.Model.Step, random: rand.New(rand.NewPCG(1, uint64(c.Steps))), exact: map[string]bool{},
	}
	for t := range exactTensors(c.Step) {
		w.exact[t.Name] = true
	}
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
	exact  map[string]bool // small integers
	nodes  []*onnxpb.NodeProto
	random *rand.Rand
}

func (w *noisyStep) node(m *onnxpb.NodeProto, tf32 bool) {
	own := proto.Clone(m).(*onnxpb.NodeProto)
	w.nodes = append(w.nodes, own)
	if isProduct(m.GetOpType()) {
		unit := 0x1p-23
		if tf32 {
			unit = 0x1p-11
		}
		if moved := fmt.Sprintf("%s~rounded%d", m.Input[0], len(w.nodes)); w.move(m.Input[0], m.Input[0], moved, unit) {
			own.Input[0] = moved
			last := len(w.nodes) - 1 // before the product
			w.nodes[last-1], w.nodes[last] = w.nodes[last], w.nodes[last-1]
		}
	} else if o := operators.Table[m.GetOpType()]; o == nil || o.Exactness > operators.Counted {
		return // it computes no numbers
	}
	for i, name := range m.Output {
		if exact := name + "~exact"; w.move(name, exact, name, 0x1p-23) {
			own.Output[i] = exact
		}
	}
}

// move adds the node that moves each column of a tensor up or down by a part of it, and reports whether it did. of is
// the tensor in the model.
func (w *noisyStep) move(of, from, to string, unit float64) bool {
	v := w.step.Value(of)
	if !v.Known() || v.Type != onnxpb.TensorProto_FLOAT || len(v.Shape) == 0 || w.exact[of] {
		return false
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
	w.nodes = append(w.nodes, &onnxpb.NodeProto{
		OpType: proto.String("Mul"), Input: []string{from, factors.GetName()}, Output: []string{to},
	})
	return true
}
