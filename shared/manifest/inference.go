package manifest

import (
	"fmt"
	"slices"
)

// InferenceGraph is an ONNX file that no training step runs: a frozen part of the model, or the model as it speaks. Its
// inputs are those listed here, parameters and state of the bundle by their names, and the tensors of Weights by
// theirs.
type InferenceGraph struct {
	Name string `json:"name"`
	// Kind says who runs it: InferenceStage, InferenceDecode or InferenceVocoder.
	Kind string `json:"kind"`
	File string `json:"file"`
	// Weights is a safetensors file with tensors of this graph alone. It may be absent.
	Weights string `json:"weights,omitempty"`
	// SampleRate is that of the waveform that the graph takes or returns, in Hz.
	SampleRate int `json:"sample_rate,omitempty"`
	// Inputs and Outputs are what the one who runs the graph gives and gets. Their symbols belong to this graph.
	Inputs  []TensorSpec `json:"inputs"`
	Outputs []TensorSpec `json:"outputs"`
}

// The values of InferenceGraph.Kind.
const (
	InferenceStage   = "stage"   // a waveform to what the model takes: a stage of the pipeline runs it, and speaking
	InferenceDecode  = "decode"  // the model, with the parameters of a run: speaking runs it
	InferenceVocoder = "vocoder" // what the model makes to a waveform: speaking runs it
)

// InferenceGraph returns the inference graph of that name, or false.
func (b *Bundle) InferenceGraph(name string) (InferenceGraph, bool) {
	for _, g := range b.Inference {
		if g.Name == name {
			return g, true
		}
	}
	return InferenceGraph{}, false
}

// Tensor returns the input or output of that name, or false.
func (g *InferenceGraph) Tensor(name string) (TensorSpec, bool) {
	for _, t := range slices.Concat(g.Inputs, g.Outputs) {
		if t.Name == name {
			return t, true
		}
	}
	return TensorSpec{}, false
}

// checkInference checks the list apart from the files.
func (b *Bundle) checkInference() error {
	parameters := map[string]bool{}
	for _, p := range b.Parameters {
		parameters[p.Name] = true
	}
	for _, s := range b.State {
		parameters[s.Name] = true
	}
	for i, g := range b.Inference {
		same := func(o InferenceGraph) bool {
			return o.Name == g.Name || o.File == g.File || o.Weights == g.Weights && g.Weights != ""
		}
		if j := slices.IndexFunc(b.Inference, same); j < i {
			return fmt.Errorf("inference[%d]: inference[%d] has the same name, file or weights", i, j)
		}
		if slices.ContainsFunc(b.Graphs, func(o Graph) bool { return o.File == g.File }) {
			return fmt.Errorf("inference[%d]: %s is one of graphs", i, g.File)
		}
		if err := g.check(parameters); err != nil {
			return fmt.Errorf("inference[%d]: %w", i, err)
		}
	}
	return nil
}

func (g *InferenceGraph) check(parameters map[string]bool) error {
	if g.Kind != InferenceDecode && g.SampleRate == 0 {
		return fmt.Errorf("%s of kind %s has no sample_rate", g.Name, g.Kind)
	}
	seen := map[string]bool{}
	for _, t := range slices.Concat(g.Inputs, g.Outputs) {
		switch {
		case seen[t.Name]:
			return fmt.Errorf("two tensors of %s are named %q", g.Name, t.Name)
		case parameters[t.Name]:
			return fmt.Errorf("%q of %s has the name of a parameter or of state", t.Name, g.Name)
		}
		seen[t.Name] = true
		if t.Lengths == "" {
			continue
		}
		counts, _ := g.Tensor(t.Lengths)
		if len(t.Shape) < 2 || counts.DType != I32 || !slices.Equal(counts.Shape, t.Shape[:1]) {
			return fmt.Errorf("the lengths tensor %q of %s is not an i32 tensor of its rows", t.Lengths, t)
		}
	}
	if i := slices.IndexFunc(g.Inputs, func(t TensorSpec) bool { return t.Feeds != "" }); i >= 0 {
		return fmt.Errorf("input %s of %s has feeds, which outputs have", g.Inputs[i], g.Name)
	}
	fed := map[string]bool{}
	for _, t := range g.Outputs {
		if t.Feeds == "" {
			continue
		}
		i := slices.IndexFunc(g.Inputs, func(in TensorSpec) bool { return in.Name == t.Feeds })
		if i < 0 || fed[t.Feeds] || !g.Inputs[i].canTake(t) {
			return fmt.Errorf(
				"%s feeds %q: that is not an input of its type and fixed sizes which no other output feeds", t, t.Feeds)
		}
		fed[t.Feeds] = true
	}
	return nil
}

// canTake reports whether an input can have the value of another tensor.
func (t TensorSpec) canTake(o TensorSpec) bool {
	return t.DType == o.DType && slices.EqualFunc(t.Shape, o.Shape, func(a, b Dim) bool {
		return (a.Symbol == "") == (b.Symbol == "") && a.Size == b.Size
	})
}
