package ort

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Binding binds tensors to a session's inputs and outputs, so that a run needs neither lookups nor allocations. Create
// one for each set of tensors, before the first step. Only one goroutine at a time may use a binding.
type Binding struct {
	session *Session
	binding *cBinding
	err     error // from the first failed bind, or from Close

	// Bound tensors are kept here as long as the library may use them.
	bound [2]map[string]*Tensor
	// outputs are in the order in which they were first bound.
	outputs []boundOutput
}

// boundOutput is an output that was bound to a tensor, or to a place.
type boundOutput struct {
	name  string
	owned bool // ONNX Runtime allocates it
	place Place
}

var errNoSuchName = errors.New("the graph has no such name")

// NewBinding creates a binding with nothing bound. Every input must be bound before Run. ONNX Runtime computes outputs
// that are not bound too, and drops them, so prune the graph to the bound outputs before creating its session.
func (s *Session) NewBinding() (*Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bindings == nil {
		return nil, fmt.Errorf("%s: new binding: %w", s.name, ErrClosed)
	}
	c, err := newBinding(s.pointer())
	if err != nil {
		return nil, fmt.Errorf("%s: new binding: %w", s.name, err)
	}
	b := &Binding{session: s, binding: c}
	b.bound[input], b.bound[output] = make(map[string]*Tensor), make(map[string]*Tensor)
	s.bindings[b] = struct{}{}
	return b, nil
}

// BindInput makes the graph read its input of that name from t. It replaces the previously bound tensor. Later runs see
// data that is written to t's memory later.
//
// A failed bind would leave the previous tensor bound, and runs would use stale data. So the first error is final: it
// matches [ErrBinding], and every later bind and Run returns it. A caller may therefore bind everything and check only
// the error of Run.
func (b *Binding) BindInput(name string, t *Tensor) error {
	return b.bind(input, b.session.inputs, name, t)
}

// BindOutput makes the graph write its output of that name to t. The tensor may also be bound as an input: the result
// is right if the graph writes each element only after it has read it, as elementwise operators do. For other graphs
// ONNX Runtime guarantees nothing. Errors are as for BindInput.
func (b *Binding) BindOutput(name string, t *Tensor) error {
	return b.bind(output, b.session.outputs, name, t)
}

func (b *Binding) bind(side side, infos []ValueInfo, name string, t *Tensor) error {
	if b.err != nil {
		return b.err
	}
	if err := checkBind(infos, name, t); err != nil {
		return b.fail(side, name, err)
	}
	if err := bind(b.binding, side, name, t.value); err != nil {
		return b.fail(side, name, err)
	}
	b.bound[side][name] = t
	if side == output {
		b.setOutput(boundOutput{name: name})
	}
	return nil
}

// BindOutputAt makes ONNX Runtime allocate the output of that name at a place, for outputs whose shape is not known
// before the run: [Binding.Outputs] returns it. It holds for one run: bind again before the next one. Errors are as for
// BindInput.
func (b *Binding) BindOutputAt(name string, place Place) error {
	if b.err != nil {
		return b.err
	}
	if !slices.ContainsFunc(b.session.outputs, func(info ValueInfo) bool { return info.Name == name }) {
		return b.fail(output, name, errNoSuchName)
	}
	info, err := memoryInfo(place)
	if err == nil {
		err = bindPlace(b.binding, name, info)
	}
	if err != nil {
		return b.fail(output, name, err)
	}
	delete(b.bound[output], name)
	b.setOutput(boundOutput{name: name, owned: true, place: place})
	return nil
}

func (b *Binding) setOutput(o boundOutput) {
	for i := range b.outputs {
		if b.outputs[i].name == o.name {
			b.outputs[i] = o
			return
		}
	}
	b.outputs = append(b.outputs, o)
}

// Outputs returns what the last run has allocated, by name. The caller closes the tensors.
func (b *Binding) Outputs() (_ map[string]*Tensor, err error) {
	if b.err != nil {
		return nil, b.err
	}
	values, err := boundValues(b.binding)
	if err != nil {
		return nil, fmt.Errorf("%s: outputs: %w", b.session.name, err)
	}
	found := map[string]*Tensor{}
	for i, v := range values {
		if err != nil || i >= len(b.outputs) || !b.outputs[i].owned {
			releaseValue(v)
			continue
		}
		var t *Tensor
		if t, err = adopt(v, b.outputs[i].place); err == nil {
			found[b.outputs[i].name] = t
		}
	}
	if err != nil {
		for _, t := range found {
			t.Close()
		}
		return nil, fmt.Errorf("%s: outputs: %w", b.session.name, err)
	}
	return found, nil
}

func (b *Binding) fail(side side, name string, err error) error {
	b.err = fmt.Errorf("%s: %w: bind %s %q: %w", b.session.name, ErrBinding, side, name, err)
	return b.err
}

// checkBind finds errors early, and names them, that ONNX Runtime would find in the run.
func checkBind(infos []ValueInfo, name string, t *Tensor) error {
	if t == nil {
		return errors.New("no tensor")
	}
	if t.value == nil {
		return ErrClosed
	}
	for _, info := range infos {
		if info.Name != name {
			continue
		}
		if t.dtype != info.DType || !fits(info.Shape, t.shape) {
			return fmt.Errorf("the graph has %s%s, but the tensor is %s%v", info.DType, info.Shape, t.dtype, t.shape)
		}
		return nil
	}
	return errNoSuchName
}

// fits reports whether a tensor of that shape has the rank and the fixed dimensions of the declared shape.
func fits(declared manifest.Shape, shape []int) bool {
	if len(declared) != len(shape) {
		return false
	}
	for i, d := range declared {
		if d.Symbol == "" && d.Size >= 0 && d.Size != shape[i] {
			return false
		}
	}
	return true
}

// Run computes the outputs from the inputs and returns when they are written. opts may be nil. A context cannot cancel
// Run, but [RunOptions.Terminate] from another goroutine can: the error is then [ErrTerminated]. After [ErrOutOfMemory]
// the binding can be run again. After any error the content of the outputs is undefined.
func (b *Binding) Run(opts *RunOptions) error {
	if b.err != nil {
		return b.err
	}
	var o *cRunOptions
	if opts != nil {
		if o = opts.pointer(); o == nil {
			return fmt.Errorf("%s: run options: %w", b.session.name, ErrClosed)
		}
	}
	err := run(b.session.pointer(), o, b.binding)
	runtime.KeepAlive(b)
	if err != nil {
		return fmt.Errorf("%s: run: %w", b.session.name, err)
	}
	return nil
}

// Close releases the binding. The caller still owns the bound tensors.
func (b *Binding) Close() error {
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	b.release()
	delete(s.bindings, b)
	return nil
}

// release requires the session's lock.
func (b *Binding) release() {
	if b.binding == nil {
		return
	}
	releaseBinding(b.binding)
	b.binding = nil
	b.bound = [2]map[string]*Tensor{}
	b.err = fmt.Errorf("%s: binding: %w", b.session.name, ErrClosed)
}
