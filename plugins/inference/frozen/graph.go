package frozen

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// graph is a session with the tensors that are the same in every run.
type graph struct {
	session *ort.Session
	weights *weights
}

// open opens the part of a graph that some outputs need. It computes in the callers' threads, so the number of processors
// changes no bit of a result.
func open(name string, model *onnxpb.ModelProto, w *weights, outputs ...string) (*graph, error) {
	part, err := prune.Model(model, func(output string) bool { return slices.Contains(outputs, output) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := proto.Marshal(part)
	if err != nil {
		return nil, err
	}
	s, err := ort.NewSession(ort.SessionConfig{Model: data, Name: name, Threads: 1})
	if err != nil {
		return nil, err
	}
	return &graph{session: s, weights: w}, nil
}

// check refuses a graph that takes anything but a waveform with its length and its weights, or that lacks an output.
func (g *graph) check(file string, outputs ...string) error {
	for _, name := range outputs {
		if !slices.ContainsFunc(g.session.Outputs(), func(v ort.ValueInfo) bool { return v.Name == name }) {
			return fmt.Errorf("%s returns no %s", file, name)
		}
	}
	for _, in := range g.session.Inputs() {
		if in.Name != waveform && in.Name != waveformLengths && g.weights.tensors[in.Name] == nil {
			return fmt.Errorf("%s takes %s, which is neither %s, %s nor a tensor of its weights", file, in.Name, waveform, waveformLengths)
		}
	}
	return nil
}

// run binds the tensors of one row, by name, and computes.
func (g *graph) run(inputs, outputs map[string]*ort.Tensor) error {
	b, err := g.session.NewBinding()
	if err != nil {
		return err
	}
	defer b.Close()
	for _, in := range g.session.Inputs() {
		t := inputs[in.Name]
		if t == nil {
			t = g.weights.tensors[in.Name]
		}
		if err := b.BindInput(in.Name, t); err != nil {
			return err
		}
	}
	for name, t := range outputs {
		if err := b.BindOutput(name, t); err != nil {
			return err
		}
	}
	return b.Run(nil)
}

func (g *graph) Close() error {
	if g == nil {
		return nil
	}
	return g.session.Close()
}

// weights are the tensors of a file, in memory that does not move.
type weights struct {
	memory  *ort.Buffer
	tensors map[string]*ort.Tensor
}

// align is that of the tensors in memory, in bytes: what vector instructions like.
const align = 64

// readWeights reads a file of weights; without a name, there are none.
func readWeights(file string) (*weights, error) {
	w := &weights{tensors: map[string]*ort.Tensor{}}
	if file == "" {
		return w, nil
	}
	f, err := safetensors.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := align
	for _, t := range f.Tensors() {
		size += (int(t.Bytes) + align - 1) / align * align
	}
	if w.memory, err = ort.NewBuffer(size); err != nil {
		return nil, err
	}
	rest := w.memory.Bytes()
	for _, t := range f.Tensors() {
		if err := f.Read(t.Name, rest[:t.Bytes]); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		dtype, ok := safetensors.GraphType(t.DType)
		if !ok {
			return nil, fmt.Errorf("%s: tensor %q is %s, which graphs do not take", file, t.Name, t.DType)
		}
		if w.tensors[t.Name], err = ort.NewTensor(rest, dtype, slices.Clone(t.Shape)); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", file, t.Name, err)
		}
		rest = rest[(int(t.Bytes)+align-1)/align*align:]
	}
	return w, nil
}

// Close releases the memory. No graph may use it any more.
func (w *weights) Close() error {
	if w == nil || w.memory == nil {
		return nil
	}
	for _, t := range w.tensors {
		t.Close()
	}
	return w.memory.Close()
}
