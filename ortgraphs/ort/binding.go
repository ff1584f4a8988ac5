package ort

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Binding ties tensors to a session's inputs and outputs, so that a run costs neither lookups nor
// allocations. Make one for each set of tensors, before the first step, and keep it. A binding serves one
// goroutine at a time.
type Binding struct {
	session *Session
	binding *cBinding
	err     error // of the first failed bind, or of Close

	// What is bound is kept here as long as the library may touch it.
	bound [2]map[string]*Tensor
}

// NewBinding makes a binding with nothing bound. Every input has to be bound before Run. Outputs that are not
// bound are computed all the same, and dropped: a graph is to be pruned to what is bound before its session is made.
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

// BindInput makes the graph read t as its input of that name, in place of what was bound before. Data that
// is written into t's memory later is seen by later runs.
//
// A failed bind would leave the former tensor bound, and runs would go on with stale data. So the first
// error is final: it matches [ErrBinding] and is returned by every bind and Run that follows. A caller may
// therefore bind everything and look at the error of Run alone.
func (b *Binding) BindInput(name string, t *Tensor) error {
	return b.bind(input, b.session.inputs, name, t)
}

// BindOutput makes the graph write its output of that name to t. The tensor may also be bound as an input:
// the result is right when the graph reads each element no later than it writes it, as elementwise
// operators do. For any other graph ONNX Runtime promises nothing. Errors are as for BindInput.
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
	return nil
}

func (b *Binding) fail(side side, name string, err error) error {
	b.err = fmt.Errorf("%s: %w: bind %s %q: %w", b.session.name, ErrBinding, side, name, err)
	return b.err
}

// checkBind finds early, and by name, what ONNX Runtime would find in the run.
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
			return fmt.Errorf("the graph has %s%s, the tensor is %s%v", info.DType, info.Shape, t.dtype, t.shape)
		}
		return nil
	}
	return errors.New("the graph has no such name")
}

// fits says whether a tensor of that shape has the rank and the fixed dimensions of the declared one.
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

// Run computes the outputs from the inputs and returns when they are written. opts may be nil. Run cannot
// be cancelled by a context, but by [RunOptions.Terminate] from another goroutine: the error is then
// [ErrTerminated]. After [ErrOutOfMemory] the binding can be run again. After any error the outputs hold
// anything.
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

// Close releases the binding. What was bound stays the caller's.
func (b *Binding) Close() error {
	s := b.session
	s.mu.Lock()
	defer s.mu.Unlock()
	b.release()
	delete(s.bindings, b)
	return nil
}

// release needs the session's lock.
func (b *Binding) release() {
	if b.binding == nil {
		return
	}
	releaseBinding(b.binding)
	b.binding = nil
	b.bound = [2]map[string]*Tensor{}
	b.err = fmt.Errorf("%s: binding: %w", b.session.name, ErrClosed)
}
