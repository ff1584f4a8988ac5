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
	// Library is the path of the shared library. If it is empty, the environment (LibraryEnv) names it. Otherwise, Init
	// searches lib/ next to the program, ../lib/, the checkout's cache, and the paths of the dynamic loader.
	Library string
	// CUDA searches the checkout's cache for the library with CUDA.
	CUDA bool
}

// kind counts the values that keep the library in use.
type kind int

const (
	sessionKind kind = iota
	tensorKind
	runOptionsKind
	arenaKind
	kinds
)

// env is the only environment of the process. The state of the library and of onnxruntime_go is global.
var env struct {
	mu      sync.Mutex
	ready   bool
	ended   bool
	library string
	infos   map[Place]*cMemoryInfo // created on demand
	arenas  map[Place]bool         // whether one is open
	open    [kinds]int
}

// Init loads ONNX Runtime and creates its environment. There is one per process: a second Init succeeds if it does not
// name another library, and fails after [Shutdown]. A failed Init may be retried. The error is a [*LibraryError] if no
// usable library was found.
//
// Init sets ORT_DISABLE_TELEMETRY=1 in the process's environment. Unless it is set before the library is loaded, ONNX
// Runtime 1.29 writes files below HOME and TMPDIR and makes DNS queries.
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
	// In a program with cgo, Setenv also sets the variable for C. The library's own switch (DisableTelemetryEvents) has
	// no effect after loading.
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return fmt.Errorf("switch telemetry off: %w", err)
	}
	dir, err := executableDir()
	if err != nil {
		return err
	}
	path, err := load(candidates(o.Library, os.Getenv(LibraryEnv), dir, userCache(), o.CUDA), openLibrary)
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
	// The library also returns every error that it logs. Without this it would print them too.
	if err := onnx.InitializeEnvironment(onnx.WithLogLevelFatal()); err != nil {
		return fmt.Errorf("initialise ONNX Runtime from %s: %w", path, reclassify(err))
	}
	env.library, env.ready, env.infos, env.arenas = path, true, map[Place]*cMemoryInfo{}, map[Place]bool{}
	return nil
}

// Find returns the absolute path of the library that Init would load, without loading it, so that another process can
// load the same. It is "" if the dynamic loader has to find it. Errors are those of Init.
func Find(o Options) (string, error) {
	dir, err := executableDir()
	if err != nil {
		return "", err
	}
	path, err := load(candidates(o.Library, os.Getenv(LibraryEnv), dir, userCache(), o.CUDA),
		func(string) error { return nil })
	if library, ok := errors.AsType[*LibraryError](err); ok {
		library.CUDA = o.CUDA
	}
	if err != nil || path == loaderDefault {
		return "", err
	}
	return filepath.Abs(path)
}

// Shutdown ends ONNX Runtime. It fails while sessions, tensors, run options or arenas are open, and counts them.
// Without a successful Init, and the second time, it does nothing.
func Shutdown() error {
	env.mu.Lock()
	defer env.mu.Unlock()
	if !env.ready {
		return nil
	}
	if env.open != [kinds]int{} {
		return fmt.Errorf("ONNX Runtime is in use: %d sessions, %d tensors, %d run options and %d arenas are open",
			env.open[sessionKind], env.open[tensorKind], env.open[runOptionsKind], env.open[arenaKind])
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

// Version returns the version of the library, such as "1.29.0", or "" before Init.
func Version() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	return libraryVersion()
}

// Library returns the path from which the library was loaded, or "" before Init.
func Library() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	return env.library
}

// memoryInfo describes where a tensor's memory is. The caller has retained the library.
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

// reserveArena records whether a place has an arena, and reports whether that changed.
func reserveArena(p Place, open bool) bool {
	env.mu.Lock()
	defer env.mu.Unlock()
	changed := env.arenas[p] != open
	env.arenas[p] = open
	return changed
}

// retain records that a value is about to be created, release that it is closed. In between, Shutdown fails.
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
