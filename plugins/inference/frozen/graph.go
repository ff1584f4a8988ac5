package frozen

import (
	"fmt"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// model is an inference graph of the bundle. name is that of its file.
type model struct {
	name  string
	proto *onnxpb.ModelProto
}

// maxGraph bounds a graph, in bytes: it has no weights.
const maxGraph = 64 << 20

func readModel(file string) (*model, error) {
	data, err := files.Read(file, maxGraph)
	if err != nil {
		return nil, err
	}
	m := &model{name: filepath.Base(file), proto: new(onnxpb.ModelProto)}
	if err := proto.Unmarshal(data, m.proto); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// part returns the part of the graph that some outputs need. It refuses a graph that lacks one of them, or that takes
// anything but a waveform with its length and its weights.
func (m *model) part(w *weights, outputs ...string) (*model, error) {
	for _, name := range outputs {
		if !slices.ContainsFunc(m.proto.GetGraph().GetOutput(), func(v *onnxpb.ValueInfoProto) bool {
			return v.GetName() == name
		}) {
			return nil, fmt.Errorf("%s returns no %s", m.name, name)
		}
	}
	part, err := prune.Model(m.proto, func(output string) bool { return slices.Contains(outputs, output) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	p := &model{name: m.name, proto: part}
	for _, in := range p.inputs() {
		if in != waveform && in != waveformLengths && w.tensors[in] == nil {
			return nil, fmt.Errorf("%s takes %s, which is neither %s, %s nor a tensor of its weights", m.name, in,
				waveform, waveformLengths)
		}
	}
	return p, nil
}

// inputs returns the names of what the graph takes.
func (m *model) inputs() []string {
	var names []string
	for _, in := range m.proto.GetGraph().GetInput() {
		names = append(names, in.GetName())
	}
	return names
}

// graph is a session with the tensors that are the same in every run.
type graph struct {
	session *ort.Session
	weights *weights
}

// open opens a part of a graph on the CPU. It computes in the callers' threads, so the number of processors changes no
// bit of a result.
func open(part *model, w *weights) (*graph, error) {
	data, err := proto.Marshal(part.proto)
	if err != nil {
		return nil, err
	}
	s, err := ort.NewSession(ort.SessionConfig{Model: data, Name: part.name, Threads: 1})
	if err != nil {
		return nil, err
	}
	return &graph{session: s, weights: w}, nil
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
