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

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/device"
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
	// Weights are the parameters and the state of the bundle. Graphs get those with adapters merged.
	Weights Weights
	// Device is the model's; the zero Device is the CPU. It has pinned Staging, through which weights come to a GPU.
	Device  *device.Device
	Staging []byte
	// Threads is the number of threads inside an operator on the CPU.
	Threads int
	// Tensors are parameters and state that are on the device already, by name; Weights has the others. It may be nil.
	Tensors map[string]*ort.Tensor
}

// Runtime has the graphs that were opened, and their weights. All calls come from one thread, on a GPU that of Device.
type Runtime struct {
	Config
	parameters map[string]*ort.Tensor // that a graph takes
	open       closers
}

// New returns a runtime with no graph open. ONNX Runtime must be initialized.
func New(c Config) *Runtime {
	c.Weights = withAdapters(c.Weights, c.Bundle)
	return &Runtime{Config: c, parameters: map[string]*ort.Tensor{}}
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
	session, err := ort.NewSession(ort.SessionConfig{
		Path: r.Bundle.Path(spec.File), Threads: r.Threads, CUDA: r.Device.CUDA, Deterministic: true, // equal seeds give equal bytes
	})
	if err != nil {
		return nil, err
	}
	r.open = append(r.open, session.Close)
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
			return r.load(own, in)
		}
	}
	return r.parameter(in)
}

// parameter returns a parameter on the device. Graphs share it.
func (r *Runtime) parameter(in ort.ValueInfo) (*ort.Tensor, error) {
	for _, known := range []map[string]*ort.Tensor{r.Tensors, r.parameters} {
		if t, ok := known[in.Name]; ok {
			return t, nil
		}
	}
	t, err := r.load(r.Weights, in)
	if err == nil {
		r.parameters[in.Name] = t
	}
	return t, err
}

// load copies the tensor of an input from a file to the device.
func (r *Runtime) load(from Weights, in ort.ValueInfo) (*ort.Tensor, error) {
	info, ok := from.Tensor(in.Name)
	if !ok {
		return nil, missing(in.Name)
	}
	host, err := ort.NewBuffer(int(info.Bytes))
	if err != nil {
		return nil, err
	}
	if err := from.Read(in.Name, host.Bytes()); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	if r.Device.Context == nil {
		r.open = append(r.open, host.Close)
		return r.tensor(ort.NewTensor(host.Bytes(), in.DType, info.Shape))
	}
	memory, err := r.upload(host.Bytes())
	if err = errors.Join(err, host.Close()); err != nil {
		return nil, err
	}
	return r.tensor(ort.NewTensorAt(r.place(), memory.Pointer(), memory.Size(), in.DType, info.Shape))
}

func missing(name string) error { return fmt.Errorf("the weights have no tensor %q", name) }

// tensor makes the runtime close a tensor that was created.
func (r *Runtime) tensor(t *ort.Tensor, err error) (*ort.Tensor, error) {
	if err == nil {
		r.open = append(r.open, t.Close)
	}
	return t, err
}

// upload copies memory to the GPU.
func (r *Runtime) upload(from []byte) (gpu.Memory, error) {
	memory, err := r.Device.Context.Allocate(len(from))
	if err != nil {
		return nil, err
	}
	r.open = append(r.open, memory.Close)
	for at := 0; at < len(from); {
		n := copy(r.Staging, from[at:])
		if err := errors.Join(r.Device.Compute.Upload(memory, at, r.Staging[:n]), r.Device.Compute.Synchronize()); err != nil {
			return nil, err
		}
		at += n
	}
	return memory, nil
}

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
