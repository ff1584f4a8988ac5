package ort

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// SessionConfig says what a session runs, and how.
type SessionConfig struct {
	// Path is the graph's file. Set exactly one of Path and Model.
	Path string
	// Model is the graph as the bytes of a file. They are not kept.
	Model []byte
	// Dir is the folder of the data files that Model names. Data files of the graph in Path are next to it.
	Dir string
	// Name is used in messages. The default is the last element of Path, or "graph".
	Name string
	// Threads is the number of threads that compute inside an operator, including the one that calls Run. The default 0
	// means GOMAXPROCS, which respects the container's CPU limit, unlike ONNX Runtime's own default.
	Threads int
	// CUDA makes a GPU compute the graph; nil means the CPU.
	CUDA *CUDA
	// Deterministic selects kernels whose results do not depend on the order in which a GPU's threads finish. They are
	// slower. On the CPU it has no effect: there, kernels have the same bits in every run with the same number of
	// threads.
	Deterministic bool
	// Unoptimized runs the nodes as they are. For a graph that runs a few times, optimization takes longer than it
	// saves.
	Unoptimized bool
	// Unplanned leaves out the plan of values that share memory, which takes seconds for thousands of nodes: ONNX
	// Runtime compares the shape of each value with those of all that are no longer read. The values of Model then have
	// no shapes, and no node writes over what it reads.
	Unplanned bool
	// Arena is memory that the session shares with others; nil means memory of its own.
	Arena *Arena
	// Kernels are what nodes of the domain [KernelDomain] launch; nil if the graph has none.
	Kernels *Kernels
}

// ValueInfo describes an input or output of a graph.
type ValueInfo struct {
	Name  string
	DType manifest.DType
	// Shape has a number or a symbol for each dimension, or the number -1 if the graph has neither.
	Shape manifest.Shape
}

// Session is a loaded and optimized graph. On the CPU, any number of bindings may run at the same time, and each run in
// flight uses one operating system thread in addition to the session's threads. On a GPU, all runs must come from one
// thread. Close must not overlap with anything else.
type Session struct {
	name    string
	session *onnx.DynamicAdvancedSession
	inputs  []ValueInfo
	outputs []ValueInfo
	cuda    *CUDA  // nil on the CPU
	arena   *Arena // nil without
	kernels operators

	mu       sync.Mutex
	bindings map[*Binding]struct{} // open bindings
}

// side distinguishes a graph's inputs from its outputs.
type side int

const (
	input side = iota
	output
)

func (s side) String() string {
	if s == output {
		return "output"
	}
	return "input"
}

// NewSession loads a graph, optimizes it and starts its threads. Operators run one after another, with all graph
// optimizations. Waiting threads sleep: spinning would take the CPU from the workers that prepare the next batch. Every
// input and output must be a tensor of a type in manifest.
func NewSession(c SessionConfig) (*Session, error) {
	if c.Name == "" {
		c.Name = "graph"
		if c.Path != "" {
			c.Name = filepath.Base(c.Path)
		}
	}
	s, err := newSession(c)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", c.Name, err)
	}
	return s, nil
}

func newSession(c SessionConfig) (*Session, error) {
	if (c.Path == "") == (len(c.Model) == 0) {
		return nil, errors.New("needs either a path or a model")
	}
	if c.Threads < 0 {
		return nil, fmt.Errorf("%d threads", c.Threads)
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	if err := retain(sessionKind); err != nil {
		return nil, err
	}
	s := &Session{name: c.Name, cuda: c.CUDA, bindings: make(map[*Binding]struct{})}
	if err := s.open(c); err != nil {
		s.Close() // never fails
		return nil, err
	}
	return s, nil
}

func (s *Session) open(c SessionConfig) error {
	if c.Arena != nil {
		if err := c.Arena.join(s); err != nil {
			return err
		}
		s.arena = c.Arena
	}
	var err error
	if s.kernels, err = newOperators(c.Kernels, s.place()); err != nil {
		return err
	}
	options, err := onnx.NewSessionOptions()
	if err != nil {
		return reclassify(err)
	}
	defer options.Destroy()
	var shapes map[string]manifest.Shape
	if c.Unplanned {
		if c.Model, shapes, err = unplanned(c.Model); err != nil {
			return err
		}
	}
	if err := s.configure(options, c); err != nil {
		if library, ok := errors.AsType[*LibraryError](err); ok {
			return library
		}
		return reclassify(err)
	}
	// No names: they are for onnxruntime_go's own Run, not for bindings.
	if c.Path != "" {
		s.session, err = onnx.NewDynamicAdvancedSession(c.Path, nil, nil, options)
	} else {
		s.session, err = onnx.NewDynamicAdvancedSessionWithONNXData(c.Model, nil, nil, options)
	}
	if err != nil {
		return reclassify(err)
	}
	if s.arena != nil {
		s.arena.opened(s)
	}
	if s.inputs, err = describeAll(s.pointer(), input); err != nil {
		return err
	}
	if s.outputs, err = describeAll(s.pointer(), output); err != nil {
		return err
	}
	for _, list := range [][]ValueInfo{s.inputs, s.outputs} {
		for i := range list {
			if shape, ok := shapes[list[i].Name]; ok {
				list[i].Shape = shape
			}
		}
	}
	return nil
}

func (s *Session) configure(options *onnx.SessionOptions, c SessionConfig) error {
	entry := func(wanted bool, key, value string) func() error {
		return func() error {
			if !wanted {
				return nil
			}
			return options.AddSessionConfigEntry(key, value)
		}
	}
	var level onnx.GraphOptimizationLevel = onnx.GraphOptimizationLevelEnableAll
	if c.Unoptimized {
		level = onnx.GraphOptimizationLevelDisableAll
	}
	for _, set := range []func() error{
		func() error { return options.SetIntraOpNumThreads(c.Threads) },
		func() error { return options.SetInterOpNumThreads(1) },
		func() error { return options.SetExecutionMode(onnx.ExecutionModeSequential) },
		func() error { return options.SetGraphOptimizationLevel(level) },
		// With a memory pattern, the second run would allocate everything again in one block and keep both: twice the
		// memory at the same speed.
		func() error { return options.SetMemPattern(false) },
		func() error { return options.SetLogSeverityLevel(onnx.LoggingLevelFatal) },
		entry(true, "session.intra_op.allow_spinning", "0"),
		entry(true, "session.inter_op.allow_spinning", "0"),
		entry(c.Dir != "", "session.model_external_initializers_file_folder_path", c.Dir),
		entry(c.Arena != nil, "session.use_env_allocators", "1"),
		func() error { return c.CUDA.append(options) },
		func() error { return s.kernels.addTo(options) },
		func() error {
			if !c.Deterministic {
				return nil
			}
			return setDeterministic(options)
		},
	} {
		if err := set(); err != nil {
			return err
		}
	}
	return nil
}

// place is where the session computes.
func (s *Session) place() Place {
	if s.cuda == nil {
		return Host
	}
	return s.cuda.Device
}

// pointer reads the C session from onnxruntime_go's struct: its first field is a pointer to a struct whose first field
// is the session. layout_test.go checks that.
func (s *Session) pointer() *cSession {
	return **(***cSession)(unsafe.Pointer(s.session))
}

// Name returns the name for messages.
func (s *Session) Name() string { return s.name }

// Inputs returns the graph's inputs in its order. The caller must not modify the list.
func (s *Session) Inputs() []ValueInfo { return s.inputs }

// Outputs returns the graph's outputs in its order. The caller must not modify the list.
func (s *Session) Outputs() []ValueInfo { return s.outputs }

// Close releases the session and its bindings. On a GPU it waits for all queued work.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bindings == nil {
		return nil
	}
	for b := range s.bindings {
		b.release()
	}
	s.bindings = nil
	if s.arena != nil {
		s.arena.leave(s)
	}
	var err error
	if s.session != nil {
		err = s.destroy()
	}
	s.kernels.close()
	release(sessionKind)
	return err
}

// destroy ends the C session. Streams that ONNX Runtime has made, such as those of a Scan, queue a callback when they
// end, which frees pinned memory and then drops the allocator. CUDA permits no callback to free what the allocator has
// in the end, and the process would abort. So the session's allocator is released after the callbacks.
func (s *Session) destroy() error {
	if s.cuda == nil {
		s.session.Destroy() // never fails
		return nil
	}
	releasePinned, err := pinned(s.pointer(), s.cuda.Device)
	s.session.Destroy()
	if err != nil {
		return fmt.Errorf("%s: pinned memory: %w", s.name, err)
	}
	_ = s.cuda.Wait() // of a GPU that is lost, a run has reported the error
	releasePinned()
	return nil
}
