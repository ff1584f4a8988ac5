package inference

import (
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// copied is a tensor in memory of the runtime.
type copied struct {
	name   string
	host   *ort.Buffer // on the CPU
	memory gpu.Memory  // on a GPU
}

// load copies the tensor of an input to the device.
func (r *Runtime) load(from Weights, in ort.ValueInfo) (*ort.Tensor, *copied, error) {
	info, ok := from.Tensor(in.Name)
	if !ok {
		return nil, nil, missing(in.Name)
	}
	c := &copied{name: in.Name}
	var err error
	if r.Device.Context == nil {
		if c.host, err = ort.NewBuffer(int(info.Bytes)); err != nil {
			return nil, nil, err
		}
		r.open = append(r.open, c.host.Close)
	} else {
		if c.memory, err = r.Device.Context.Allocate(int(info.Bytes)); err != nil {
			return nil, nil, err
		}
		r.open = append(r.open, c.memory.Close)
	}
	if err := r.fill(c, from); err != nil {
		return nil, nil, err
	}
	var t *ort.Tensor
	if c.memory == nil {
		t, err = ort.NewTensor(c.host.Bytes(), in.DType, info.Shape)
	} else {
		t, err = ort.NewTensorAt(r.place(), c.memory.Pointer(), c.memory.Size(), in.DType, info.Shape)
	}
	if err != nil {
		return nil, nil, err
	}
	r.open = append(r.open, t.Close)
	return t, c, nil
}

// fill copies the values of a tensor to its memory.
func (r *Runtime) fill(c *copied, from Weights) (err error) {
	if c.memory == nil {
		return from.Read(c.name, c.host.Bytes())
	}
	size := c.memory.Size()
	if size <= len(r.Staging) {
		if err := from.Read(c.name, r.Staging[:size]); err != nil {
			return err
		}
		return r.upload(c.memory, 0, size)
	}
	host, err := ort.NewBuffer(size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	if err := from.Read(c.name, host.Bytes()); err != nil {
		return err
	}
	for at := 0; at < size; at += len(r.Staging) {
		n := copy(r.Staging, host.Bytes()[at:])
		if err := r.upload(c.memory, at, n); err != nil {
			return err
		}
	}
	return nil
}

// upload copies the first n bytes of Staging to an offset on the GPU.
func (r *Runtime) upload(to gpu.Memory, at, n int) error {
	return errors.Join(r.Device.Compute.Upload(to, at, r.Staging[:n]), r.Device.Compute.Synchronize())
}

// CopiedBytes returns the memory of the weights that a Runtime copies to the device for some of a bundle's graphs, if
// Config.Tensors has all parameters and state: the graphs' own, and those with adapters.
func CopiedBytes(b *ortgraphs.Bundle, opened func(graph string) bool) (total int, err error) {
	merged, stored := withAdapters(nil, b), b.Stored()
	for _, spec := range b.Manifest.Inference {
		if !opened(spec.Name) {
			continue
		}
		own := map[string]int64{}
		if spec.Weights != "" {
			file, err := safetensors.Open(b.Path(spec.Weights))
			if err != nil {
				return 0, err
			}
			for _, t := range file.Tensors() {
				own[t.Name] = t.Bytes
			}
			if err := file.Close(); err != nil {
				return 0, err
			}
		}
		for _, in := range b.Model(spec.File).GetGraph().GetInput() {
			name := in.GetName()
			bytes, ok := own[name]
			switch {
			case spec.Takes(name):
			case ok:
				total += int(bytes)
			case merged.merged(name):
				size := 4
				for _, n := range stored[name] {
					size *= n
				}
				total += size
				delete(merged.adapters, name) // graphs share it
			}
		}
	}
	return total, nil
}
