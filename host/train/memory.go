package train

import (
	"errors"
	"slices"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// memory allocates blocks, tensors, sessions and bindings on a device and owns them. It keeps the first error, so that
// a constructor reads as a list.
type memory struct {
	closers
	device   Device
	async    *ort.RunOptions // nil on the CPU
	sessions []*ort.Session
	values   *ort.Arena      // of intermediate values of all sessions; nil if each has its own
	shrink   *ort.RunOptions // for the next run of each session in unshrunk
	unshrunk []*ort.Session
	captured bool     // CUDA graphs contain addresses in the arenas
	alone    []string // graphs that one thread computes, and why
	err      error
}

// newMemory returns the memory of a device, still empty.
func newMemory(d Device) memory {
	m := memory{device: d}
	if d.CUDA == nil {
		return m
	}
	if m.async, m.err = ort.NewRunOptions(); m.err == nil {
		m.add(m.async.Close)
		m.err = m.async.Async()
	}
	return m
}

// block returns zeroed memory of the device.
func (m *memory) block(size int) block {
	b := block{size: max(1, size)}
	if m.err != nil {
		return b
	}
	if !m.device.onGPU() {
		m.err = m.mirror(&b)
		return b
	}
	if b.dev, m.err = m.device.Context.Allocate(b.size); m.err == nil {
		m.add(b.dev.Close)
	}
	return b
}

// tensor returns a tensor on size bytes of a block.
func (m *memory) tensor(b block, at int, dtype manifest.DType, shape ...int) *ort.Tensor {
	if m.err != nil {
		return nil
	}
	var t *ort.Tensor
	if m.device.onGPU() {
		t, m.err = ort.NewTensorAt(m.device.place(), b.dev.Pointer()+uintptr(at), b.size-at, dtype, shape)
	} else {
		t, m.err = ort.NewTensor(b.host[at:], dtype, shape)
	}
	if m.err != nil {
		return nil
	}
	m.add(t.Close)
	return t
}

// apart is the distance between words: kernels of a GPU require aligned operands.
const apart = 256

// words are scalars that graphs read or write, in one block, so that one copy moves all of them.
type words struct {
	block
	used  int
	blank []byte // on a GPU all bits are set, which is NaN
}

// words returns words with room for n values.
func (m *memory) words(n int) *words {
	w := &words{block: m.block(n * apart)}
	if m.err != nil || !m.device.onGPU() {
		return w
	}
	pinned, err := m.device.Context.AllocateHost(2 * w.size)
	if err != nil {
		m.err = err
		return w
	}
	m.add(pinned.Close)
	w.host, w.blank = pinned.Bytes()[:w.size], pinned.Bytes()[w.size:]
	fill(w.blank, 0xff)
	return w
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// send queues the copy of the words that the host has written, for work that is queued later. The host must not write
// again before the copy is done.
func (m *memory) send(w *words) error {
	if !m.device.onGPU() {
		return nil
	}
	return m.device.Compute.Upload(w.dev, 0, w.host[:w.used])
}

// blank sets all words to NaN, after the queued work, so that a value that a graph does not write is detected.
func (m *memory) blank(w *words) error {
	if !m.device.onGPU() {
		fill(w.host[:w.used], 0xff)
		return nil
	}
	return m.device.Compute.Upload(w.dev, 0, w.blank[:w.used])
}

// receive queues the transfer of the words that graphs have written.
func (m *memory) receive(w *words) error {
	if !m.device.onGPU() {
		return nil
	}
	return m.device.Compute.Download(w.host[:w.used], w.dev, 0)
}

// event returns an event of the device; nil on the CPU.
func (m *memory) event() gpu.Event {
	if m.err != nil || !m.device.onGPU() {
		return nil
	}
	e, err := m.device.Context.NewEvent()
	if err != nil {
		m.err = err
		return nil
	}
	m.add(e.Close)
	return e
}

// word is one of the words, with its tensor.
type word[T ort.Element] struct {
	value  *T
	tensor *ort.Tensor
	at     int // in the block of words
}

func newWord[T ort.Element](m *memory, w *words, dtype manifest.DType) word[T] {
	if m.err != nil {
		return word[T]{value: new(T)}
	}
	at := w.used
	w.used += apart
	return word[T]{&ort.View[T](w.host[at : at+dtype.Size()])[0], m.tensor(w.block, at, dtype), at}
}

// open opens a graph and owns its session. graphs allows to capture its runs as CUDA graphs.
func (m *memory) open(cfg ort.SessionConfig, graphs bool) *ort.Session {
	if m.err != nil {
		return nil
	}
	s, err := ort.NewSession(m.configured(cfg, graphs))
	if err != nil {
		m.err = err
		return nil
	}
	m.own(s)
	return s
}

// configured is the configuration of a session of the memory.
func (m *memory) configured(cfg ort.SessionConfig, graphs bool) ort.SessionConfig {
	cfg.Deterministic, cfg.Arena = m.device.Deterministic, m.values
	if m.device.CUDA != nil {
		cuda := *m.device.CUDA
		cuda.Graphs = graphs
		if m.values != nil {
			cuda.MemoryLimit = 0 // the arena has it
		}
		cfg.CUDA = &cuda
	}
	return cfg
}

// own makes a session one of the memory's.
func (m *memory) own(s *ort.Session) {
	m.add(func() error { return closeSession(m, s) })
	m.sessions = append(m.sessions, s)
}

// closeSession closes one of the sessions; nil is none.
func closeSession(m *memory, s *ort.Session) error {
	if s == nil {
		return nil
	}
	other := func(o *ort.Session) bool { return o == s }
	m.sessions, m.unshrunk = slices.DeleteFunc(m.sessions, other), slices.DeleteFunc(m.unshrunk, other)
	return s.Close()
}

// shareArena makes the sessions that are opened from now on share the memory of their intermediate values, also those
// of several players.
func shareArena(m *memory) {
	if m.err != nil || m.device.CUDA == nil || m.values != nil {
		return
	}
	if m.values, m.err = ort.NewArena(m.device.CUDA.Device, m.device.CUDA.MemoryLimit); m.err == nil {
		m.add(m.values.Close)
	}
}

// run runs a binding, after the queued work.
func (m *memory) run(e execution) error {
	if m.device.onGPU() && m.device.CUDA == nil { // the CPU provider has no streams
		if err := m.device.Compute.Synchronize(); err != nil {
			return err
		}
	}
	options := e.options
	if i := slices.Index(m.unshrunk, e.session); i >= 0 {
		m.unshrunk = slices.Delete(m.unshrunk, i, i+1)
		options = m.shrink
	}
	return e.binding.Run(options)
}

// execution is a binding with its run options. They stay together: with the options of another binding, ONNX Runtime
// would silently replay the captured graph on the memory of that binding.
type execution struct {
	session *ort.Session
	binding *ort.Binding
	options *ort.RunOptions // nil on the CPU
}

// execution binds all inputs and outputs of the graph.
func (m *memory) execution(s *ort.Session, inputs, outputs tensors) execution {
	if m.err != nil {
		return execution{}
	}
	b, err := s.NewBinding()
	if err != nil {
		m.err = err
		return execution{}
	}
	for _, in := range s.Inputs() {
		if m.err == nil {
			m.err = b.BindInput(in.Name, inputs[in.Name])
		}
	}
	for _, out := range s.Outputs() {
		if m.err == nil {
			m.err = b.BindOutput(out.Name, outputs[out.Name])
		}
	}
	return execution{s, b, m.async}
}

// capture makes the next run of e capture CUDA graph id, which later runs replay. ids are the session's.
func (m *memory) capture(e *execution, id int) error {
	options, err := ort.NewRunOptions()
	if err != nil {
		return err
	}
	m.add(options.Close)
	e.options = options
	return errors.Join(options.Async(), options.SetGraph(id))
}
