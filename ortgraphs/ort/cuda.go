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

// CUDA says how a session uses a GPU. It needs the GPU build of the library.
//
// Runs are queued on Stream. With run options of [RunOptions.Async] Run returns when everything is queued; without them, when
// it is done. Nothing else in the process may use CUDA's legacy stream meanwhile.
type CUDA struct {
	// Device is the GPU's number, as CUDA counts in this process.
	Device Place
	// Stream is the CUstream that kernels are queued on. It outlives the session.
	Stream uintptr
	// MemoryLimit caps the session's own memory, in bytes: intermediate values and workspaces, not what is bound. 0 is no
	// cap. A run that needs more fails with [ErrOutOfMemory]; opening the session never does.
	MemoryLimit int
	// TF32 rounds the operands of f32 matrix products to 10 bits of mantissa: about twice as fast, errors of 1e-3.
	TF32 bool
	// Graphs lets runs with [RunOptions.SetGraph] be captured once and then replayed.
	Graphs bool
	// Whole refuses a graph that has a node which would run on the CPU, arithmetic on shapes included.
	Whole bool
}

// cudaLibraries are those that the CUDA provider loads by name, each after those that it needs itself.
// scripts/fetch-ort-gpu.sh fetches them.
var cudaLibraries = []string{
	"libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12", "libcudnn.so.9",
}

// CUDALibraries returns the libraries of CUDA that the CUDA provider needs, by the names that the loader finds.
func CUDALibraries() []string { return slices.Clone(cudaLibraries) }

// preloadCUDA opens those that lie beside the library, where scripts/fetch-ort.sh --gpu puts what a machine lacks. The dynamic loader
// does not look there, and its search path cannot be changed once the process runs.
func preloadCUDA(library string) error {
	for _, name := range cudaLibraries {
		path := filepath.Join(filepath.Dir(library), name)
		if _, err := os.Stat(path); err != nil {
			continue // the loader's own, or the provider says that it is missing
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
		return fmt.Errorf("CUDA needs a stream: 0 is the legacy one, which waits for all others")
	}
	p, err := onnx.NewCUDAProviderOptions()
	if err != nil {
		if strings.Contains(err.Error(), "not enabled in this build") {
			return &LibraryError{Tried: []string{Library()}, Err: errors.New("it has no CUDA"), CUDA: true}
		}
		return err
	}
	defer p.Destroy()
	flag := func(b bool) string {
		if b {
			return "1"
		}
		return "0"
	}
	settings := map[string]string{
		"device_id":         strconv.Itoa(int(c.Device)),
		"use_tf32":          flag(c.TF32),
		"enable_cuda_graph": flag(c.Graphs),
		// An arena that doubles itself takes up to twice what is needed.
		"arena_extend_strategy": "kSameAsRequested",
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
	return options.AppendExecutionProviderCUDA(p)
}

// setStream and setDeterministic take the C options out of onnxruntime_go's, whose only field they are. layout_test.go
// watches that.
func setStream(p *onnx.CUDAProviderOptions, stream uintptr) error {
	return cudaStream(*(*unsafe.Pointer)(unsafe.Pointer(p)), stream)
}

func setDeterministic(o *onnx.SessionOptions) error {
	return deterministic(*(*unsafe.Pointer)(unsafe.Pointer(o)))
}

// Async makes Run on a GPU return as soon as everything is queued on the session's stream. On the CPU it changes nothing.
func (o *RunOptions) Async() error {
	return o.AddConfig("disable_synchronize_execution_providers", "1")
}

// SetGraph gives the binding of these options the number of a CUDA graph, from 0. The first run with it captures what later runs
// replay: with the memory and the shapes of that time, so a number belongs to one binding for good, and to one thread.
func (o *RunOptions) SetGraph(n int) error {
	return o.AddConfig("gpu_graph_id", strconv.Itoa(n+1)) // 0 is ONNX Runtime's default number
}

// NoGraph runs kernel by kernel in a session with CUDA graphs, whatever has been captured.
func (o *RunOptions) NoGraph() error { return o.AddConfig("gpu_graph_id", "-1") }

// ShrinkArenas makes runs with these options give back, when they are done, what the session's arena holds of the memory at p and no
// value lies in. The next run without them takes it again, so such a run is for the rare moment at which an arena has grown beyond
// what is needed, after a batch of unusual shape or size. It is a run of its own kind in two ways: without Async, since all
// work must be done before memory goes, and never in a session of which CUDA graphs were captured, which hold addresses in
// the arena. A session that has no arena at p fails to run.
func (o *RunOptions) ShrinkArenas(p Place) error {
	device := "cpu:0"
	if p != Host {
		device = "gpu:" + strconv.Itoa(int(p))
	}
	return o.AddConfig("memory.enable_memory_arena_shrinkage", device)
}

// ArenaBytes returns the memory that the session's own arena has taken of the GPU; 0 on the CPU. What was taken stays until the
// session is closed, or a run with [RunOptions.ShrinkArenas] gives it back.
func (s *Session) ArenaBytes() (int, error) {
	if s.cuda == nil {
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
