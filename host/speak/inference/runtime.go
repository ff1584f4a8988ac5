// Package inference runs the inference graphs of a bundle (docs/bundle.md) on the device of the model. Graphs share the
// parameters, and what a graph returns stays on the device until the host asks for it:
//
//	runtime := inference.New(inference.Config{Bundle: bundle, Weights: weights, Device: new(device.Device), Threads: 1})
//	step, err := runtime.Open(ctx, "step")
//	results, err := step.Run(inference.Values{"code": code, "position": position, "past_keys": keys}, "logits")
package inference

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// Weights reads tensors by their names.
type Weights interface {
	Tensor(name string) (safetensors.Info, bool)
	Read(name string, dst []byte) error
}

// Config configures a Runtime.
type Config struct {
	Bundle *ortgraphs.Bundle
	// Weights are the parameters and the state of the bundle. Graphs get copies of those that they take, with adapters
	// merged.
	Weights Weights
	// Device is the model's; the zero Device is the CPU. It has pinned Staging, through which weights come to a GPU.
	Device  *device.Device
	Staging []byte
	// Threads is the number of threads inside an operator on the CPU.
	Threads int
	// Tensors are those of Weights that are on the device already, by name. Graphs get them instead of copies, unless
	// they have adapters. It may be nil.
	Tensors map[string]*ort.Tensor
}

// Runtime has the graphs that were opened, and their weights. All calls come from one thread, on a GPU that of Device.
type Runtime struct {
	Config
	weights    adapted
	parameters map[string]*ort.Tensor // that a graph takes
	merged     []*copied              // those of them with adapters
	sessions   []*ort.Session
	open       closers
}

// New returns a runtime with no graph open. ONNX Runtime must be initialized.
func New(c Config) *Runtime {
	return &Runtime{Config: c, weights: withAdapters(c.Weights, c.Bundle), parameters: map[string]*ort.Tensor{}}
}

// Close closes the graphs and releases the weights.
func (r *Runtime) Close() error { return r.open.close() }

// Open opens the inference graph of that name, with the weights that no graph has loaded before. It ends early with the
// cause of ctx.
func (r *Runtime) Open(ctx context.Context, name string) (*Graph, error) {
	spec, ok := r.Bundle.Manifest.InferenceGraph(name)
	if !ok {
		return nil, fmt.Errorf("%s has no inference graph %s", r.Bundle.Manifest.Name, name)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	// equal seeds give equal bytes
	config := ort.SessionConfig{Path: r.Bundle.Path(spec.File), Threads: r.Threads, Deterministic: true}
	if r.Device.CUDA != nil {
		cuda := *r.Device.CUDA
		cuda.Growing = true
		config.CUDA = &cuda
	}
	session, err := ort.NewSession(config)
	if err != nil {
		return nil, err
	}
	r.open, r.sessions = append(r.open, session.Close), append(r.sessions, session)
	g := &Graph{Spec: spec, session: session, place: r.place()}
	if g.binding, err = session.NewBinding(); err != nil {
		return nil, err
	}
	var own *safetensors.File
	if spec.Weights != "" {
		if own, err = safetensors.Open(r.Bundle.Path(spec.Weights)); err != nil {
			return nil, err
		}
		defer own.Close()
	}
	for _, in := range session.Inputs() {
		if spec.Takes(in.Name) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		t, err := r.weight(own, in)
		if err != nil {
			return nil, err
		}
		if err := g.binding.BindInput(in.Name, t); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// weight returns a tensor of the graph's own weights, if there are any, or else a parameter, on the device.
func (r *Runtime) weight(own *safetensors.File, in ort.ValueInfo) (*ort.Tensor, error) {
	if own != nil {
		if _, ok := own.Tensor(in.Name); ok {
			t, _, err := r.load(own, in)
			return t, err
		}
	}
	return r.parameter(in)
}

// parameter returns a parameter on the device. Graphs share it.
func (r *Runtime) parameter(in ort.ValueInfo) (*ort.Tensor, error) {
	merged := r.weights.merged(in.Name)
	if t, ok := r.Tensors[in.Name]; ok && !merged {
		return t, nil
	}
	if t, ok := r.parameters[in.Name]; ok {
		return t, nil
	}
	t, c, err := r.load(r.weights, in)
	if err != nil {
		return nil, err
	}
	if r.parameters[in.Name] = t; merged {
		r.merged = append(r.merged, c)
	}
	return t, nil
}

// Refresh merges the adapters again into the weights that graphs take, after a change of Weights. It ends early with
// the cause of ctx: then some weights are old.
func (r *Runtime) Refresh(ctx context.Context) error {
	for _, c := range r.merged {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := r.fill(c, r.weights); err != nil {
			return err
		}
	}
	return nil
}

// ArenaBytes returns the GPU memory that ONNX Runtime holds for the values of the graphs; 0 on the CPU.
func (r *Runtime) ArenaBytes() (total int, err error) {
	for _, s := range r.sessions {
		n, err := s.ArenaBytes()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

func missing(name string) error { return fmt.Errorf("the weights have no tensor %q", name) }

// place is where the tensors of graphs are.
func (r *Runtime) place() ort.Place {
	if r.Device.CUDA == nil {
		return ort.Host
	}
	return r.Device.CUDA.Device
}

// closers closes what was opened, in reverse order.
type closers []func() error

func (c *closers) close() error {
	var errs []error
	for len(*c) > 0 {
		last := len(*c) - 1
		errs = append(errs, (*c)[last]())
		*c = (*c)[:last]
	}
	return errors.Join(errs...)
}

// bytesOf returns the memory of a slice.
func bytesOf[T ort.Element](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(T))))
}
