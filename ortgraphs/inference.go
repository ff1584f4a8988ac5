package ortgraphs

import (
	"fmt"
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ofInference reports whether a file has the weights of an inference graph.
func ofInference(m *manifest.Bundle, name string) bool {
	return slices.ContainsFunc(m.Inference, func(g manifest.InferenceGraph) bool { return g.Weights == name })
}

// readFrozen reads the header of the weights of an inference graph. Its tensors are checked with the graph.
func readFrozen(b *Bundle, name string, file io.ReaderAt, size int64, f *faults) {
	weights, err := safetensors.NewReader(file, size)
	if err != nil {
		f.add("header", "%v", err)
		return
	}
	b.frozen[name] = weights.Tensors()
}

// checkAllInference checks the inference graphs, after all files have been read. What could not be read has faults
// already.
func checkAllInference(b *Bundle) []Fault {
	var list []Fault
	for _, g := range b.Manifest.Inference {
		model := b.models[g.File]
		weights, read := b.frozen[g.Weights]
		if model == nil || g.Weights != "" && !read {
			continue
		}
		own := &faults{file: g.Weights}
		inputs := stored(b, weights, own)
		f := &faults{file: g.File}
		checkInference(g, model.Graph, inputs, weights, f)
		list = append(append(list, own.list...), f.list...)
	}
	return list
}

// stored returns the types of the tensors that an inference graph may take from files, by name: parameters, state, and
// the tensors of its own weights.
func stored(b *Bundle, weights []safetensors.Info, f *faults) map[string]tensorType {
	types := map[string]tensorType{}
	for name, shape := range b.Stored() {
		types[name] = tensorType{dtype: manifest.F32, shape: fixed(shape)}
	}
	for _, t := range weights {
		place := fmt.Sprintf("tensor %q", t.Name)
		dtype, known := safetensors.GraphType(t.DType)
		switch _, twice := types[t.Name]; {
		case twice:
			f.add(place, "has the name of a parameter or of state")
		case !known:
			f.add(place, "is %s, which graphs do not take", t.DType)
		default:
			types[t.Name] = tensorType{dtype: dtype, shape: fixed(t.Shape)}
		}
	}
	return types
}

// checkInference compares a graph with its entry. inputs are the tensors that it may take from files; it takes all of
// weights.
func checkInference(
	g manifest.InferenceGraph, graph *onnxpb.GraphProto, inputs map[string]tensorType, weights []safetensors.Info,
	f *faults,
) {
	outputs := map[string]tensorType{}
	var given, made []string
	for _, t := range weights {
		given = append(given, t.Name)
	}
	for _, t := range g.Inputs {
		if _, ok := inputs[t.Name]; ok {
			f.add(fmt.Sprintf("input %q", t.Name), "is in inputs and in %s", g.Weights)
		}
		inputs[t.Name] = tensorType{dtype: t.DType, shape: t.Shape}
		given = append(given, t.Name)
	}
	for _, t := range g.Outputs {
		outputs[t.Name] = tensorType{dtype: t.DType, shape: t.Shape}
		made = append(made, t.Name)
	}
	from := "inputs, nor a parameter or state"
	if g.Weights != "" {
		from += ", nor in " + g.Weights
	}
	c := comparison{faults: f, symbols: map[string]string{}}
	c.inputs(graph, inputs, given, "is not in its "+from)
	c.values("output", graph.Output, outputs, made, "is not in its outputs")
}
