package fuse

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// innerGraphs writes the graphs in a node's attributes, such as the step of a Scan. They read what they capture under
// the names that it has in the written graph. Their own tensors get names that no other has, because a name of the
// written graph may be one of theirs.
type innerGraphs struct {
	*emitter
	node *shapes.Node
}

func (g *innerGraphs) attributes(list []*onnxpb.AttributeProto, outside map[string]string) []*onnxpb.AttributeProto {
	list = slices.Clone(list)
	for i, a := range list {
		if a.G == nil && len(a.Graphs) == 0 {
			continue
		}
		own := proto.Clone(a).(*onnxpb.AttributeProto)
		for _, inner := range append(own.Graphs[:len(own.Graphs):len(own.Graphs)], own.G) {
			if inner != nil {
				g.rename(inner, outside)
			}
		}
		list[i], g.functions = own, true
	}
	return list
}

// rename changes the names of a graph's tensors. outside has those of the graphs around it, by their old names.
func (g *innerGraphs) rename(inner *onnxpb.GraphProto, outside map[string]string) {
	names := maps.Clone(outside)
	names[""] = ""
	own := map[string]bool{}
	defined := func(name string) *string {
		if name != "" && !own[name] {
			own[name], names[name] = true, g.unique(name)
		}
		return proto.String(names[name])
	}
	read := func(old string) string {
		name, ok := names[old]
		if !ok {
			g.fail("%s (%s): its graph reads %s, which nothing computes", g.node.Place, g.node.Op(), old)
		}
		return name
	}
	for _, v := range inner.Input {
		v.Name = defined(v.GetName())
	}
	for _, t := range inner.Initializer {
		t.Name = defined(t.GetName())
	}
	for _, t := range inner.SparseInitializer {
		if t.Values != nil {
			t.Values.Name = defined(t.Values.GetName())
		}
	}
	for _, n := range inner.Node {
		for i, name := range n.Input {
			n.Input[i] = read(name)
		}
		n.Attribute = g.attributes(n.Attribute, names)
		for i, name := range n.Output {
			n.Output[i] = *defined(name)
		}
	}
	for _, v := range inner.Output {
		v.Name = proto.String(read(v.GetName()))
	}
	inner.ValueInfo, inner.QuantizationAnnotation = nil, nil // ONNX Runtime infers them
}
