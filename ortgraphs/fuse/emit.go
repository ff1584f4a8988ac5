package fuse

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/leaves"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Call is the node that runs a region's kernel. Its outputs are the region's Out, in the region's Shapes.
type Call struct {
	Op, Domain string
	Attributes []*onnxpb.AttributeProto
	// In are its inputs: tensors that the region reads.
	In []*Tensor
}

// Model writes the graph as an ONNX model with fixed shapes, which has the inputs and outputs of the model that was lowered. call returns
// the node that computes a region, or nil if the region's nodes shall be written one by one. The same graph always gives
// the same model.
func (g *Graph) Model(regions []*Region, call func(r *Region) *Call) (*onnxpb.ModelProto, error) {
	e := newEmitter(g)
	calls := map[*Node]func(){}
	for _, r := range regions {
		if c := call(r); c != nil {
			for _, n := range r.Nodes {
				calls[n] = nil
			}
			calls[r.Nodes[0]] = func() { e.call(r, c) }
		}
	}
	for _, n := range g.Nodes {
		if write, ok := calls[n]; !ok {
			e.plain(n)
		} else if write != nil {
			write()
		}
		if e.err != nil {
			return nil, e.err
		}
	}
	for _, o := range g.Outputs {
		e.output(o)
	}
	if e.err != nil {
		return nil, e.err
	}
	e.graph.Node = leaves.Last(e.graph.Node)
	return &onnxpb.ModelProto{IrVersion: g.model.IrVersion, ProducerName: proto.String("xtts-host"), Graph: e.graph, OpsetImport: e.imports}, nil
}

// emitter is a graph on its way to a model.
type emitter struct {
	*modelFile
	outputs map[*Tensor][]Output
	// stored says where tensors are, and in which shape.
	stored map[*Tensor]placed
	// views are the results of nodes that only show a tensor in another way, by that tensor's name and the view.
	views map[viewKey]string
	// values are the names of the model's constants.
	values map[*shapes.Value]string
}

type placed struct {
	name  string
	shape []int
}

func newEmitter(g *Graph) *emitter {
	e := &emitter{newModelFile(g.model), map[*Tensor][]Output{}, map[*Tensor]placed{}, map[viewKey]string{}, map[*shapes.Value]string{}}
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

func (e *emitter) call(r *Region, c *Call) {
	var in, out []string
	for _, t := range c.In {
		in = append(in, e.find(t).name)
	}
	for i, t := range r.Out {
		name := e.place(t, r.Shapes[i])
		out = append(out, name)
		if len(e.outputs[t]) == 0 {
			e.graph.ValueInfo = append(e.graph.ValueInfo, valueInfo(name, t.Type, r.Shapes[i]))
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
