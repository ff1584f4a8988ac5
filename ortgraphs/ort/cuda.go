package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	onnx "github.com/yalue/onnxruntime_go"
)

// CUDA configures the GPU of a session. It requires the GPU build of the library.
//
// Runs are queued on Stream. With options of [RunOptions.Async], Run returns when everything is queued; otherwise it
// returns when everything is done. Nothing else in the process may use CUDA's legacy stream meanwhile.
type CUDA struct {
	// Device is the GPU's index in CUDA's order in this process.
	Device Place
	// Stream is the CUstream on which kernels are queued. It must outlive the session.
	Stream uintptr
	// MemoryLimit limits the session's own memory, in bytes: intermediate values and workspaces, not bound tensors. 0
	// means no limit. A run that needs more fails with [ErrOutOfMemory]; opening the session never does. A session with
	// an [Arena] has the limit of the arena.
	MemoryLimit int
	// Growing has the session's own memory grow in steps of twice the size, up to twice of what is needed: for a graph
	// whose values are larger in each run, such as the keys and values of a text. Otherwise each new size is memory of
	// its own.
	Growing bool
	// TF32 rounds the operands of f32 matrix products to 10 bits of mantissa: about twice as fast, with errors of 1e-3.
	TF32 bool
	// Graphs allows runs with [RunOptions.SetGraph] to be captured once and then replayed.
	Graphs bool
	// Whole refuses a graph with a node that would run on the CPU, including shape arithmetic.
	Whole bool
	// Wait returns when all work of the GPU's context is done, also that of streams that ONNX Runtime has made.
	// [Session.Close] calls it. It is required.
	Wait func() error
}

// cudaLibraries are the libraries that the CUDA provider loads by name, each after the libraries that it needs.
// xtts-host fetch cuda fetches them.
var cudaLibraries = []string{
	"libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12", "libcudnn.so.9",
}

// CUDALibraries returns the CUDA libraries that the CUDA provider needs, by the names for the dynamic loader.
func CUDALibraries() []string { return slices.Clone(cudaLibraries) }

// preloadCUDA opens the libraries next to ONNX Runtime's, where xtts-host fetch cuda puts those that a machine
// lacks. The dynamic loader does not search there, and its search path cannot be changed in a running process.
func preloadCUDA(library string) error {
	for _, name := range cudaLibraries {
		path := filepath.Join(filepath.Dir(library), name)
		if _, err := os.Stat(path); err != nil {
			continue // the loader finds it, or the provider reports that it is missing
		}
		if err := preload(path); err != nil {
			return &LibraryError{Tried: []string{path}, Err: err, CUDA: true}
		}
	}
	return nil
}

// append adds the provider to a session's options.
func (c *CUDA) append(options *onnx.SessionOptions) error {
	if c == nil {
		return nil
	}
	if c.Stream == 0 {
		return fmt.Errorf("CUDA needs a stream: 0 is the legacy stream, which waits for all others")
	}
	if c.Wait == nil {
		return fmt.Errorf("CUDA needs a function that waits for the GPU")
	}
	p, err := onnx.NewCUDAProviderOptions()
	if err != nil {
		return withoutCUDA(err)
	}
	defer p.Destroy()
	flag := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	growth := "kSameAsRequested"
	if c.Growing {
		growth = "kNextPowerOfTwo"
	}
	settings := map[string]string{
		"device_id":             strconv.Itoa(int(c.Device)),
		"use_tf32":              flag(c.TF32),
		"enable_cuda_graph":     flag(c.Graphs),
		"arena_extend_strategy": growth,
		// For all sessions. The default, an exhaustive search, takes some 10 ms for each convolution whenever its input
		// has another shape than in the run before; this one about a tenth of that.
		"cudnn_conv_algo_search": "HEURISTIC",
	}
	if c.MemoryLimit > 0 {
		settings["gpu_mem_limit"] = strconv.Itoa(c.MemoryLimit)
	}
	if err := p.Update(settings); err != nil {
		return err
	}
	if err := setStream(p, c.Stream); err != nil {
		return err
	}
	if c.Whole {
		if err := options.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"); err != nil {
			return err
		}
	}
	return withoutCUDA(options.AppendExecutionProviderCUDA(p))
}

// loadCUDA has ONNX Runtime load the CUDA provider, as the options of a session do.
func loadCUDA() error {
	options, err := onnx.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	p, err := onnx.NewCUDAProviderOptions()
	if err != nil {
		return withoutCUDA(err)
	}
	defer p.Destroy()
	return withoutCUDA(options.AppendExecutionProviderCUDA(p))
}

// withoutCUDA explains the error if a GPU is used with the library for CPUs, or without the CUDA provider.
func withoutCUDA(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "not enabled in this build"):
		err = errors.New("it has no CUDA")
	case strings.Contains(err.Error(), "Failed to load shared library"):
		err = errors.New(
			"its CUDA provider, libonnxruntime_providers_cuda.so, or a library that this needs cannot be loaded")
	default:
		return err
	}
	return &LibraryError{Tried: []string{Library()}, Err: err, CUDA: true}
}

// setStream and setDeterministic read the C options from onnxruntime_go's struct, whose only field they are.
// layout_test.go checks that.
func setStream(p *onnx.CUDAProviderOptions, stream uintptr) error {
	return cudaStream(*(*unsafe.Pointer)(unsafe.Pointer(p)), stream)
}

func setDeterministic(o *onnx.SessionOptions) error {
	return deterministic(*(*unsafe.Pointer)(unsafe.Pointer(o)))
}

// Async makes Run on a GPU return as soon as everything is queued on the session's stream. On the CPU it has no effect.
func (o *RunOptions) Async() error {
	return o.AddConfig("disable_synchronize_execution_providers", "1")
}

// SetGraph assigns the number of a CUDA graph, from 0, to the binding of these options. The first run with it is
// captured; later runs replay it with the memory and the shapes of the capture. So a number belongs permanently to one
// binding, and to one thread.
func (o *RunOptions) SetGraph(n int) error {
	return o.AddConfig("gpu_graph_id", strconv.Itoa(n+1)) // 0 is ONNX Runtime's default number
}

// NoGraph runs kernel by kernel in a session with CUDA graphs, even if graphs were captured.
func (o *RunOptions) NoGraph() error { return o.AddConfig("gpu_graph_id", "-1") }

// ShrinkArenas makes runs with these options release, at their end, the memory at p in the session's arena that no
// value uses. The next run without this option allocates it again, so use it only when an arena has grown beyond its
// usual size, after a batch of unusual shape or size. Two rules apply. Do not combine it with Async, because all work
// must be done before memory is released. Never use it in a session with captured CUDA graphs, which contain addresses
// in the arena. A run fails if the session has no arena at p.
func (o *RunOptions) ShrinkArenas(p Place) error {
	device := "cpu:0"
	if p != Host {
		device = "gpu:" + strconv.Itoa(int(p))
	}
	return o.AddConfig("memory.enable_memory_arena_shrinkage", device)
}

// ArenaBytes returns the GPU memory that the session's own arena has allocated; 0 on the CPU, and with an [Arena],
// whose size [Arena.Bytes] returns. It stays allocated until the session is closed, or a run with
// [RunOptions.ShrinkArenas] releases it.
func (s *Session) ArenaBytes() (int, error) {
	if s.cuda == nil || s.arena != nil {
		return 0, nil
	}
	info, err := memoryInfo(s.cuda.Device)
	if err != nil {
		return 0, fmt.Errorf("%s: arena: %w", s.name, err)
	}
	n, err := stats(s.pointer(), info, "TotalAllocated")
	if err != nil {
		return 0, fmt.Errorf("%s: arena: %w", s.name, err)
	}
	return n, nil
}
