package fuse

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// constant returns the name of a constant, which it writes if no one has yet.
func (e *emitter) constant(t *Tensor) string {
	if t.Value == nil {
		return e.numbers(t.Data, t.Type, t.Shape)
	}
	return e.value(t.Value)
}

// value returns the name of a constant of the model: as the file has it, or else as its numbers, or else by the nodes
// that compute it.
func (e *emitter) value(v *shapes.Value) string {
	if name, ok := e.values[v]; ok {
		return name
	}
	switch {
	case v.Proto != nil:
		e.values[v] = e.unique(v.Name)
		e.graph.Initializer = append(e.graph.Initializer, renamed(v.Proto, e.values[v]))
	case v.Data != nil && !v.Rounded():
		e.values[v] = e.numbers(v.Data, v.Type, sizes(v))
	case v.From != nil:
		e.computed(v.From)
	default:
		e.fail("nothing computes %s", v.Name)
	}
	return e.values[v]
}

// computed writes a node of the model that computes constants from constants.
func (e *emitter) computed(n *shapes.Node) {
	var in, out []string
	for _, v := range n.Reads() {
		name := ""
		if v != nil {
			name = e.value(v)
		}
		in = append(in, name)
	}
	for _, v := range n.Out {
		name := ""
		if v != nil {
			name = e.unique(v.Name)
			e.values[v] = name
		}
		out = append(out, name)
	}
	e.original(n, in, out)
}

// original writes a node as the model has it, but with the names that its tensors have here: reads are those of its
// Reads.
func (e *emitter) original(n *shapes.Node, reads, out []string) {
	in, captured := reads[:len(n.In)], map[string]string{}
	for i, c := range n.Captured {
		captured[c.Name] = reads[len(in)+i]
	}
	inner := innerGraphs{e, n}
	name := slices.IndexFunc(out, func(name string) bool { return name != "" })
	e.graph.Node = append(e.graph.Node, &onnxpb.NodeProto{
		Name: proto.String(out[name]), OpType: n.Proto.OpType, Domain: n.Proto.Domain, Overload: n.Proto.Overload,
		Input: in, Output: out, Attribute: inner.attributes(n.Proto.Attribute, captured),
	})
}

// renamed returns a tensor that has the same content in memory, or in the same file.
func renamed(t *onnxpb.TensorProto, name string) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), Dims: t.Dims, DataType: t.DataType, Segment: t.Segment, FloatData: t.FloatData,
		Int32Data: t.Int32Data, StringData: t.StringData, Int64Data: t.Int64Data, DoubleData: t.DoubleData,
		Uint64Data: t.Uint64Data, RawData: t.RawData, ExternalData: t.ExternalData, DataLocation: t.DataLocation,
	}
}
