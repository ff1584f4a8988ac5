// Package kernels compiles the kernels of fused graphs for the model GPU, and loads them.
package kernels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
)

// Compiler implements [fused.Compiler] for a GPU.
type Compiler struct {
	nvrtc   *nvrtc.Compiler
	context gpu.Context
	options nvrtc.Options
	log     *slog.Logger
}

// New returns a compiler for the GPU of a context. library is the file of ONNX Runtime, next to which NVRTC may be. The folder cache keeps
// what has been compiled.
func New(context gpu.Context, capability int, library, cache string, log *slog.Logger) (*Compiler, error) {
	c, err := nvrtc.Open(library)
	if err != nil {
		return nil, err
	}
	return &Compiler{c, context, nvrtc.Options{Capability: capability, Flags: fused.Options, Cache: cache}, log}, nil
}

// Compile compiles in parallel, and loads the programs. The functions of a program that the compiler or the driver
// refuses have its reason as their error.
func (c *Compiler) Compile(sources []string) (fused.Programs, error) {
	began := time.Now()
	compiled, err := c.nvrtc.Compile(context.Background(), c.options, sources)
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if compiled.CacheError != nil {
		c.log.Warn("kernels", "error", compiled.CacheError)
	}
	p := &programs{launch: c.context.LaunchAddress(), modules: map[string]gpu.Module{}, refused: map[string]error{}}
	for i, source := range sources {
		if err := p.load(c.context, source, compiled.Images[i], compiled.Refused[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("kernels: %w", err), p.Close())
		}
	}
	c.log.Info("kernels", "compiled", compiled.New, "cached", compiled.Cached, "refused", len(p.refused), "nvrtc", c.nvrtc.Version(), "seconds", time.Since(began).Seconds())
	return p, nil
}

// programs are loaded programs, by their sources.
type programs struct {
	launch  uintptr
	modules map[string]gpu.Module
	refused map[string]error // by the compiler or the driver
}

// load loads a program, unless the compiler has refused it.
func (p *programs) load(context gpu.Context, source string, image []byte, refused error) error {
	if refused == nil {
		module, err := context.NewModule(image)
		if err == nil {
			p.modules[source] = module
			return nil
		}
		if !errors.Is(err, gpu.ErrNoKernel) {
			return err
		}
		refused = err
	}
	p.refused[source] = refused
	return nil
}

func (p *programs) Launch() uintptr { return p.launch }

func (p *programs) Function(source, name string) (uintptr, error) {
	if err := p.refused[source]; err != nil {
		return 0, err
	}
	m, ok := p.modules[source]
	if !ok {
		return 0, fmt.Errorf("kernel %s: no such program is loaded", name)
	}
	k, err := m.Kernel(name)
	if err != nil {
		return 0, err
	}
	return k.Pointer(), nil
}

func (p *programs) Close() error {
	var errs []error
	for source, m := range p.modules {
		errs = append(errs, m.Close())
		delete(p.modules, source)
	}
	return errors.Join(errs...)
}
