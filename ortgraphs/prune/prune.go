// Package prune removes the nodes of an ONNX model that the requested outputs do not need.
//
// ONNX Runtime computes every node of a graph, whatever outputs are bound: evaluation with a training graph would
// compute the backward pass too. So a model is pruned to the requested outputs before a session is created from it:
//
//	evaluated, err := prune.Model(model, func(output string) bool { return output == "loss" })
package prune

import (
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// ErrNothing is the error if no output of the graph is requested.
var ErrNothing = errors.New("no output of the graph is asked for")

// Model returns the model with the outputs that keep accepts, and everything that they need: nodes, inputs,
// initializers, value infos and functions. The rest is shared with model, unchanged and in its order; model itself does
// not change. Pruning to the same outputs again changes nothing.
func Model(model *onnxpb.ModelProto, keep func(output string) bool) (*onnxpb.ModelProto, error) {
	g := model.GetGraph()
	outputs := filter(g.GetOutput(), func(v *onnxpb.ValueInfoProto) bool { return keep(v.GetName()) })
	if len(outputs) == 0 {
		return nil, ErrNothing
	}
	r := reach(g, outputs)
	named := func(v *onnxpb.ValueInfoProto) bool { return r.values[v.GetName()] }
	out := &onnxpb.GraphProto{
		Name: g.Name, DocString: g.DocString, MetadataProps: g.MetadataProps, Output: outputs,
		Input:     filter(g.Input, named),
		Node:      filter(g.Node, func(n *onnxpb.NodeProto) bool { return r.nodes[n] }),
		ValueInfo: filter(g.ValueInfo, named),
		Initializer: filter(g.Initializer, func(t *onnxpb.TensorProto) bool {
			return r.values[t.GetName()]
		}),
		SparseInitializer: filter(g.SparseInitializer, func(t *onnxpb.SparseTensorProto) bool {
			return r.values[t.GetValues().GetName()]
		}),
		QuantizationAnnotation: filter(g.QuantizationAnnotation, func(a *onnxpb.TensorAnnotation) bool {
			return r.values[a.GetTensorName()]
		}),
	}
	c := called(out.Node, model.Functions)
	return &onnxpb.ModelProto{
		IrVersion: model.IrVersion, ProducerName: model.ProducerName, ProducerVersion: model.ProducerVersion,
		Domain: model.Domain, ModelVersion: model.ModelVersion, DocString: model.DocString,
		MetadataProps: model.MetadataProps, TrainingInfo: model.TrainingInfo, Configuration: model.Configuration,
		Graph:     out,
		Functions: filter(model.Functions, func(f *onnxpb.FunctionProto) bool { return c.functions[idOf(f)] }),
		OpsetImport: filter(model.OpsetImport,
			func(o *onnxpb.OperatorSetIdProto) bool { return c.domains[domain(o.GetDomain())] }),
	}, nil
}

func filter[T any](list []T, keep func(T) bool) []T {
	var kept []T
	for _, v := range list {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// reached is the part of a graph that some outputs need: nodes, and the names of values. A node that is needed for one
// of its outputs keeps its other outputs and their value infos.
type reached struct {
	nodes  map[*onnxpb.NodeProto]bool
	values map[string]bool
}

func reach(g *onnxpb.GraphProto, outputs []*onnxpb.ValueInfoProto) reached {
	makers := map[string]*onnxpb.NodeProto{}
	for _, n := range g.Node {
		for _, name := range n.Output {
			makers[name] = n
		}
	}
	r := reached{map[*onnxpb.NodeProto]bool{}, map[string]bool{}}
	var open []string
	for _, v := range outputs {
		open = append(open, v.GetName())
	}
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		r.values[name] = true
		n := makers[name]
		if n == nil || r.nodes[n] {
			continue
		}
		r.nodes[n] = true
		for _, other := range n.Output {
			r.values[other] = true
		}
		for used := range Reads(n) {
			if !r.values[used] {
				open = append(open, used)
			}
		}
	}
	delete(r.values, "") // an absent optional input or output
	return r
}

// Reads returns the names of the values that a node reads: its inputs, and what it captures.
func Reads(n *onnxpb.NodeProto) map[string]bool {
	names := Captured(n)
	for _, name := range n.Input {
		if name != "" {
			names[name] = true
		}
	}
	return names
}

// Captured returns the names of the values from outside that the inner graphs of a node read.
func Captured(n *onnxpb.NodeProto) map[string]bool {
	names := map[string]bool{}
	for g := range inner(n) {
		for name := range free(g) {
			names[name] = true
		}
	}
	return names
}

// free returns the names that a graph uses and does not define.
func free(g *onnxpb.GraphProto) map[string]bool {
	used := map[string]bool{}
	for _, v := range g.Output {
		used[v.GetName()] = true
	}
	for _, n := range g.Node {
		for name := range Reads(n) {
			used[name] = true
		}
	}
	for _, v := range g.Input {
		delete(used, v.GetName())
	}
	for _, t := range g.Initializer {
		delete(used, t.GetName())
	}
	for _, t := range g.SparseInitializer {
		delete(used, t.GetValues().GetName())
	}
	for _, n := range g.Node {
		for _, name := range n.Output {
			delete(used, name)
		}
	}
	return used
}

// inner iterates over the graphs in a node's attributes.
func inner(n *onnxpb.NodeProto) func(yield func(*onnxpb.GraphProto) bool) {
	return func(yield func(*onnxpb.GraphProto) bool) {
		for _, a := range n.Attribute {
			if a.G != nil && !yield(a.G) {
				return
			}
			for _, g := range a.Graphs {
				if !yield(g) {
					return
				}
			}
		}
	}
}
