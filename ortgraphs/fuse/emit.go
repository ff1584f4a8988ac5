package fuse

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/leaves"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Call is a node that runs a kernel. It may read and compute tensors that the graph does not have.
type Call struct {
	Op, Domain string
	Attributes []*onnxpb.AttributeProto
	In, Out    []*Tensor
	Shapes     [][]int // of Out
}

// Model writes the graph as an ONNX model with fixed shapes, which has the inputs and outputs of the model that was
// lowered. calls returns the nodes that compute a region, or nil if the region's nodes shall be written one by one. An
// output of the model that no node reads may be computed by the nodes of a later region. The same graph always gives
// the same model.
func (g *Graph) Model(regions []*Region, calls func(r *Region) []*Call) (*onnxpb.ModelProto, error) {
	e := newEmitter(g)
	computed := map[*Node][]*Call{} // the calls of a region are those of its first node
	for _, r := range regions {
		if list := calls(r); list != nil {
			for _, n := range r.Nodes {
				computed[n] = nil
			}
			computed[r.Nodes[0]] = list
		}
	}
	for _, n := range g.Nodes {
		list, ok := computed[n]
		if !ok {
			e.plain(n)
		}
		for _, c := range list {
			e.call(c)
		}
		if e.err != nil {
			return nil, e.err
		}
	}
	return e.model(func() {})
}

// model completes the model. after adds nodes that ONNX Runtime computes first, with what they read.
func (e *emitter) model(after func()) (*onnxpb.ModelProto, error) {
	for _, o := range e.source.Outputs {
		e.output(o)
	}
	e.graph.Node = leaves.Last(e.graph.Node)
	after()
	if e.err != nil {
		return nil, e.err
	}
	m := &onnxpb.ModelProto{
		IrVersion: e.source.model.IrVersion, ProducerName: proto.String("xtts-host"), Graph: e.graph,
		OpsetImport: e.imports,
	}
	if e.functions {
		m.Functions = e.source.model.Functions
	}
	return m, nil
}

// emitter is a graph on its way to a model.
type emitter struct {
	*modelFile
	source  *Graph
	outputs map[*Tensor][]Output
	// stored says where tensors are, and in which shape.
	stored map[*Tensor]placed
	// views are the results of nodes that only show a tensor in another way, by that tensor's name and the view.
	views map[viewKey]string
	// values are the names of the model's constants.
	values map[*shapes.Value]string
	// functions says that the model's functions are needed: nodes have graphs of their own, in which calls are not
	// replaced.
	functions bool
}

type placed struct {
	name  string
	shape []int
}

func newEmitter(g *Graph) *emitter {
	e := &emitter{
		newModelFile(g.model), g, map[*Tensor][]Output{}, map[*Tensor]placed{}, map[viewKey]string{},
		map[*shapes.Value]string{}, false,
	}
	for _, t := range g.Inputs {
		e.names[t.Name] = true
		e.stored[t] = placed{t.Name, t.Shape}
		e.graph.Input = append(e.graph.Input, valueInfo(t.Name, t.Type, t.Shape))
	}
	for _, o := range g.Outputs {
		e.names[o.Name] = true
		e.outputs[o.Tensor] = append(e.outputs[o.Tensor], o)
		e.graph.Output = append(e.graph.Output, valueInfo(o.Name, o.Tensor.Type, o.Shape))
	}
	return e
}

// place gives a tensor that is about to be written its name: that of the model's output if the shapes agree.
func (e *emitter) place(t *Tensor, shape []int) string {
	name := ""
	for _, o := range e.outputs[t] {
		if slices.Equal(o.Shape, shape) {
			name = o.Name
			break
		}
	}
	if name == "" {
		name = e.unique(t.Name)
	}
	e.stored[t] = placed{name, shape}
	return name
}

// find returns where a tensor is.
func (e *emitter) find(t *Tensor) placed {
	p, ok := e.stored[t]
	switch {
	case ok:
	case t.Constant:
		p = placed{e.constant(t), t.Shape}
		e.stored[t] = p
	default:
		e.fail("%s is read before it is computed", t.Name)
	}
	return p
}

func (e *emitter) call(c *Call) {
	var in, out []string
	for _, t := range c.In {
		in = append(in, e.find(t).name)
	}
	for i, t := range c.Out {
		name := e.place(t, c.Shapes[i])
		out = append(out, name)
		if len(e.outputs[t]) == 0 {
			e.graph.ValueInfo = append(e.graph.ValueInfo, valueInfo(name, t.Type, c.Shapes[i]))
		}
	}
	e.node(c.Op, in, out, c.Attributes...).Domain = proto.String(c.Domain)
	e.require(c.Domain, 1)
}

// output makes sure that an output of the model exists: a tensor under its name has it already.
func (e *emitter) output(o Output) {
	p := e.find(o.Tensor)
	switch {
	case p.name == o.Name:
	case slices.Equal(p.shape, o.Shape):
		e.node("Identity", []string{p.name}, []string{o.Name})
	default:
		e.node("Reshape", []string{p.name, e.shape(o.Shape)}, []string{o.Name}, reshapeAttributes(o.Shape)...)
	}
}
