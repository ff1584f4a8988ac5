// Package kernels compiles the kernels of fused graphs for the model GPU, and loads them.
package kernels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cublas"
	"github.com/xtts-host/xtts-host/gpu/cudnn"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Compiler implements [fused.Compiler] for a GPU.
type Compiler struct {
	nvrtc    *nvrtc.Compiler
	products *cublas.Library // nil for the reason lacks
	lacks    error
	// convolutions is nil for the reason noConvolutions.
	convolutions   *cudnn.Library
	noConvolutions error
	context        gpu.Context
	config         Config
	log            *slog.Logger
}

// Config says for which GPU a compiler is, and where its files are.
type Config struct {
	Capability int
	// TF32 rounds the operands of matrix products and convolutions in f32.
	TF32 bool
	// Deterministic takes the same algorithms of matrix products in every run, instead of the fastest.
	Deterministic bool
	// Library is the file of ONNX Runtime, next to which NVRTC and cuBLAS may be.
	Library string
	// Cache is the folder of what has been compiled; none if it is empty.
	Cache string
}

// New returns a compiler for the GPU of a context.
func New(context gpu.Context, c Config, log *slog.Logger) (*Compiler, error) {
	compiler, err := nvrtc.Open(c.Library)
	if err != nil {
		return nil, err
	}
	products, lacks := cublas.Open(c.Library)
	convolutions, noConvolutions := cudnn.Open(c.Library)
	return &Compiler{compiler, products, lacks, convolutions, noConvolutions, context, c, log}, nil
}

// SetGPU makes a form one for the compiler's GPU.
func (c *Compiler) SetGPU(form *fused.Form) {
	card := c.context.Device()
	form.Capability, form.Multiprocessors = card.Capability, cudac.Multiprocessors{
		Count: card.Multiprocessors.Count, SharedMemory: card.Multiprocessors.SharedMemory,
		Uncooperative: !card.Multiprocessors.Cooperative,
	}
}

// Compile compiles in parallel, and loads the programs. The functions of a program that the compiler or the driver
// refuses have its reason as their error.
func (c *Compiler) Compile(sources []string) (fused.Programs, error) {
	began := time.Now()
	options := nvrtc.Options{Capability: c.config.Capability, Flags: fused.Options, Cache: c.config.Cache}
	compiled, err := c.nvrtc.Compile(context.Background(), options, sources)
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	if compiled.CacheError != nil {
		c.log.Warn("kernels", "error", compiled.CacheError)
	}
	p := &programs{
		compiler: c, launch: c.context.LaunchAddress(), cooperative: c.context.CooperativeLaunchAddress(),
		modules: map[string]gpu.Module{}, refused: map[string]error{},
	}
	for i, source := range sources {
		if err := p.load(c.context, source, compiled.Images[i], compiled.Refused[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("kernels: %w", err), p.Close())
		}
	}
	if p.multiplier, err = c.multiplier(p); err != nil {
		p.lacks = err
		c.log.Warn("kernels", "error", err)
	}
	c.log.Info("kernels", "compiled", compiled.New, "cached", compiled.Cached, "refused", len(p.refused), "nvrtc",
		c.nvrtc.Version(), "seconds", time.Since(began).Seconds())
	return p, nil
}

// multiplier opens cuBLAS for the programs.
func (c *Compiler) multiplier(p *programs) (*ort.Multiplier, error) {
	if c.lacks != nil {
		return nil, c.lacks
	}
	measured := cublas.Large
	if c.config.Deterministic {
		measured = 0
	}
	h, err := c.products.NewHandle(measured)
	if err != nil {
		return nil, err
	}
	p.handle = h
	return &ort.Multiplier{
		Handle: h.Pointer(), SetStream: c.products.SetStream(), SetWorkspace: c.products.SetWorkspace(),
		GemmBatched: c.products.GemmBatched(), LinearHandle: h.LtPointer(), Linear: c.products.Linear(),
		Check: c.products.CheckLinear(), Forget: c.products.ForgetLinear(), TF32: c.config.TF32,
	}, nil
}

// programs are loaded programs, by their sources.
type programs struct {
	compiler     *Compiler
	launch       uintptr
	cooperative  uintptr
	modules      map[string]gpu.Module
	refused      map[string]error // by the compiler or the driver
	handle       *cublas.Handle   // nil for the reason lacks
	multiplier   *ort.Multiplier
	lacks        error
	convolutions *cudnn.Handle // nil until they are needed
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

func (p *programs) CooperativeLaunch() uintptr { return p.cooperative }

func (p *programs) Multiplier() (*ort.Multiplier, error) { return p.multiplier, p.lacks }

// Convolver makes cuDNN's handle, which graphs without large convolutions do not need.
func (p *programs) Convolver() (*ort.Convolver, error) {
	library, err := p.compiler.convolutions, p.compiler.noConvolutions
	if err == nil && p.convolutions == nil {
		p.convolutions, err = library.NewHandle(!p.compiler.config.Deterministic, p.compiler.config.TF32)
	}
	if err != nil {
		return nil, err
	}
	return &ort.Convolver{
		Handle: p.convolutions.Pointer(), Convolve: library.Convolve(), Check: library.Check(),
	}, nil
}

func (p *programs) Function(source, name string, shared int) (uintptr, error) {
	if err := p.refused[source]; err != nil {
		return 0, err
	}
	m, ok := p.modules[source]
	if !ok {
		return 0, fmt.Errorf("kernel %s: no such program is loaded", name)
	}
	k, err := m.Kernel(name)
	if err == nil && shared > 0 {
		err = k.SetShared(shared)
	}
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
	if p.handle != nil {
		errs = append(errs, p.handle.Close())
	}
	if p.convolutions != nil {
		errs = append(errs, p.convolutions.Close())
	}
	return errors.Join(errs...)
}
