package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"
)

// Options say how ONNX Runtime is loaded.
type Options struct {
	// Library is the path of the shared library. When it is empty, the environment (LibraryEnv) names it;
	// otherwise it is looked for in lib/ beside the program, in ../lib/, in the checkout's cache, and
	// where the dynamic loader looks.
	Library string
	// CUDA looks in the checkout's cache for the library with CUDA.
	CUDA bool
}

// kind counts what keeps the library in use.
type kind int

const (
	sessionKind kind = iota
	tensorKind
	runOptionsKind
	kinds
)

// env is the process's one environment. The library's state is global, and so is onnxruntime_go's.
var env struct {
	mu      sync.Mutex
	ready   bool
	ended   bool
	library string
	infos   map[Place]*cMemoryInfo // made on demand
	open    [kinds]int
}

// Init loads ONNX Runtime and makes its environment. There is one in a process: a second Init is welcome while
// it names no other library, and an error behind [Shutdown]. A failed Init may be tried again. The error is a
// [*LibraryError] when no usable library was found.
//
// Init sets ORT_DISABLE_TELEMETRY=1 in the process's environment, whatever it was: unless it is set before
// the library is loaded, ONNX Runtime 1.29 writes files below HOME and TMPDIR and looks up names.
func Init(o Options) error {
	env.mu.Lock()
	defer env.mu.Unlock()
	switch {
	case env.ended:
		return errors.New("ONNX Runtime was shut down and cannot be initialised again in this process")
	case env.ready && o.Library != "" && asFile(o.Library) != env.library:
		return fmt.Errorf("ONNX Runtime is in use from %s and cannot be loaded from %s as well", env.library, o.Library)
	case env.ready:
		return nil
	}
	// In a program with cgo, Setenv sets the variable for C, too. The library's own switch
	// (DisableTelemetryEvents) comes too late and changes nothing.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return fmt.Errorf("switch telemetry off: %w", err)
	}
	dir, err := executableDir()
	if err != nil {
		return err
	}
	path, err := load(candidates(o.Library, os.Getenv(LibraryEnv), dir, o.CUDA), openLibrary)
	if library, ok := errors.AsType[*LibraryError](err); ok {
		library.CUDA = o.CUDA
	}
	if err != nil {
		return err
	}
	if o.CUDA {
		if err := preloadCUDA(path); err != nil {
			return err
		}
	}
	onnx.SetSharedLibraryPath(path)
	// Whatever the library logs as an error it also returns. Without this it would print as well.
	if err := onnx.InitializeEnvironment(onnx.WithLogLevelFatal()); err != nil {
		return fmt.Errorf("initialise ONNX Runtime from %s: %w", path, reclassify(err))
	}
	env.library, env.ready, env.infos = path, true, map[Place]*cMemoryInfo{}
	return nil
}

// Find returns the absolute path of the library that Init would load, without loading it: for another process to load the same. It is
// "" where the dynamic loader is to find it. The error is that of Init.
func Find(o Options) (string, error) {
	dir, err := executableDir()
	if err != nil {
		return "", err
	}
	path, err := load(candidates(o.Library, os.Getenv(LibraryEnv), dir, o.CUDA), func(string) error { return nil })
	if library, ok := errors.AsType[*LibraryError](err); ok {
		library.CUDA = o.CUDA
	}
	if err != nil || path == loaderDefault {
		return "", err
	}
	return filepath.Abs(path)
}

// Shutdown ends ONNX Runtime. It refuses while sessions, tensors or run options are open, and counts them.
// Without a successful Init, and the second time, it does nothing.
func Shutdown() error {
	env.mu.Lock()
	defer env.mu.Unlock()
	if !env.ready {
		return nil
	}
	if env.open != [kinds]int{} {
		return fmt.Errorf("ONNX Runtime is in use: %d sessions, %d tensors and %d run options are open",
			env.open[sessionKind], env.open[tensorKind], env.open[runOptionsKind])
	}
	env.ready, env.ended = false, true
	for _, info := range env.infos {
		releaseInfo(info)
	}
	if err := onnx.DestroyEnvironment(); err != nil {
		return fmt.Errorf("shut ONNX Runtime down: %w", err)
	}
	return nil
}

// Version returns the version of the library, such as "1.29.0", and "" before Init.
func Version() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	return libraryVersion()
}

// Library returns the path that the library was loaded from, and "" before Init.
func Library() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.library
}

// memoryInfo says where a tensor's memory lies. The caller has retained what it is for.
func memoryInfo(p Place) (*cMemoryInfo, error) {
	env.mu.Lock()
	defer env.mu.Unlock()
	if info, ok := env.infos[p]; ok {
		return info, nil
	}
	info, err := newMemoryInfo(p)
	if err == nil {
		env.infos[p] = info
	}
	return info, err
}

// retain says that a value is about to be made; release, that it is gone. In between Shutdown refuses.
func retain(k kind) error {
	env.mu.Lock()
	defer env.mu.Unlock()
	if !env.ready {
		return ErrNotInitialized
	}
	env.open[k]++
	return nil
}

func release(k kind) {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.open[k]--
}
