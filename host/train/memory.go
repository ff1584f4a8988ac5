package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// memory makes buffers and tensors and owns them; the first error sticks, so that a constructor reads as a list.
type memory struct {
	closers
	err error
}

// buffer returns zeroed memory outside Go's heap.
func (m *memory) buffer(size int) []byte {
	if m.err != nil {
		return nil
	}
	b, err := ort.NewBuffer(max(1, size))
	if err != nil {
		m.err = err
		return nil
	}
	m.add(b.Close)
	return b.Bytes()
}

// tensor views the start of mem as a tensor.
func (m *memory) tensor(mem []byte, dtype manifest.DType, shape ...int) *ort.Tensor {
	if m.err != nil {
		return nil
	}
	t, err := ort.NewTensor(mem, dtype, shape)
	if err != nil {
		m.err = err
		return nil
	}
	m.add(t.Close)
	return t
}

// floats views elements [from, from+n) of an f32 arena as a tensor.
func (m *memory) floats(arena []byte, from int, shape ...int) *ort.Tensor {
	if m.err != nil {
		return nil
	}
	return m.tensor(arena[4*from:], manifest.F32, shape...)
}

// scalar is one value that a graph reads or writes, with its tensor.
type scalar[T ort.Element] struct {
	value  *T
	tensor *ort.Tensor
}

func newScalar[T ort.Element](m *memory, dtype manifest.DType) scalar[T] {
	mem := m.buffer(8)
	if m.err != nil {
		return scalar[T]{value: new(T)}
	}
	return scalar[T]{&ort.View[T](mem[:dtype.Size()])[0], m.tensor(mem, dtype)}
}

// session opens a graph and owns it.
func (m *memory) session(cfg ort.SessionConfig) *ort.Session {
	if m.err != nil {
		return nil
	}
	s, err := ort.NewSession(cfg)
	if err != nil {
		m.err = err
		return nil
	}
	m.add(s.Close)
	return s
}

// bind makes a binding of every input of the graph, and of those outputs that are given.
func (m *memory) bind(s *ort.Session, inputs, outputs map[string]*ort.Tensor) *ort.Binding {
	if m.err != nil {
		return nil
	}
	b, err := s.NewBinding()
	if err != nil {
		m.err = err
		return nil
	}
	for _, in := range s.Inputs() {
		if err := b.BindInput(in.Name, inputs[in.Name]); err != nil {
			m.err = err
			return nil
		}
	}
	for _, out := range s.Outputs() {
		t, ok := outputs[out.Name]
		if !ok {
			continue // not asked for: ONNX Runtime does not compute it
		}
		if err := b.BindOutput(out.Name, t); err != nil {
			m.err = err
			return nil
		}
	}
	return b
}
