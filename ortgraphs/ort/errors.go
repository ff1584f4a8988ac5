package ort

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrNotInitialized is returned by everything that needs the library before Init or after Shutdown.
	ErrNotInitialized = errors.New("ONNX Runtime is not initialised")

	// ErrClosed is returned if a value is used after its Close.
	ErrClosed = errors.New("already closed")

	// ErrBinding marks a failed bind and every later use of that binding.
	ErrBinding = errors.New("binding is unusable")

	// ErrOutOfMemory means that an allocation failed, on the host or on a device. The message has the sizes, if ONNX
	// Runtime reports them. The session remains usable.
	ErrOutOfMemory error = outOfMemory{}

	// ErrLaunch means that the device has not launched a kernel or a convolution of [Kernels]. The message has the
	// error of CUDA or cuDNN. After some errors, such as an illegal address, which an earlier kernel may have caused,
	// nothing on the device works any more.
	ErrLaunch = errors.New("kernel not launched")

	// ErrThread means that the operating system has not given ONNX Runtime a thread. It has a hint.
	ErrThread error = noThread{}

	// ErrTerminated means that [RunOptions.Terminate] ended a run.
	ErrTerminated = errors.New("run terminated")
)

// ONNX Runtime has no error code for either case: out of memory is reported as FAIL or RUNTIME_EXCEPTION, like most
// other errors. The texts are the library's, see errors_test.go.
var (
	outOfMemoryTexts = []string{
		"Failed to allocate memory for requested buffer of size", // the arena, device full
		"is smaller than requested bytes of",                     // the arena, at its limit
		"std::bad_alloc",                                         // host memory outside the arena
		"CUDA failure 2: ",                                       // cudaErrorMemoryAllocation
		"CUBLAS_STATUS_ALLOC_FAILED",
		"CUDNN_STATUS_ALLOC_FAILED",
	}
	terminatedText = "Exiting due to terminate flag being set to true"
	launchTexts    = []string{": cuLaunchKernel", ": cuLaunchCooperativeKernel", ": convolution"} // kernelcall.c
	threadText     = "pthread_create failed"
)

// outOfMemory is the type of ErrOutOfMemory.
type outOfMemory struct{}

func (outOfMemory) Error() string { return "out of memory" }

// ExitStatus is that of a command that fails for want of memory (README.md has the list).
func (outOfMemory) ExitStatus() int { return 3 }

// noThread is the type of ErrThread.
type noThread struct{}

func (noThread) Error() string { return "no further thread can be started" }

// Hint implements the interface of package hint.
func (noThread) Hint() string {
	return "ulimit -u unlimited, or a larger limit of processes of the container (docker run --pids-limit)"
}

// classify returns an error for a message of the library, which wraps the matching sentinel.
func classify(message string) error {
	message = strings.TrimSpace(message)
	for _, text := range outOfMemoryTexts {
		if strings.Contains(message, text) {
			return fmt.Errorf("%w: %s", ErrOutOfMemory, message)
		}
	}
	switch {
	case strings.Contains(message, terminatedText):
		return ErrTerminated
	case slices.ContainsFunc(launchTexts, func(text string) bool { return strings.Contains(message, text) }):
		return fmt.Errorf("%w: %s", ErrLaunch, message)
	case strings.Contains(message, threadText):
		_, why, _ := strings.Cut(message, threadText)
		return fmt.Errorf("%w%s", ErrThread, why)
	}
	return errors.New(message)
}

// reclassify does the same for an error of onnxruntime_go, whose own wrapping only names its C calls.
func reclassify(err error) error {
	if err == nil {
		return nil
	}
	if inner := errors.Unwrap(err); inner != nil {
		return reclassify(inner)
	}
	return classify(err.Error())
}
