package ort

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotInitialized is returned by everything that needs the library before Init or after Shutdown.
	ErrNotInitialized = errors.New("ONNX Runtime is not initialised")

	// ErrClosed is returned by the use of a value after its Close.
	ErrClosed = errors.New("already closed")

	// ErrBinding marks a failed bind and every use of that binding afterwards.
	ErrBinding = errors.New("binding is unusable")

	// ErrOutOfMemory says that an allocation failed, on the host or on a device. The message has the
	// sizes, where ONNX Runtime gives them. A session can be used again afterwards.
	ErrOutOfMemory = errors.New("out of memory")

	// ErrTerminated says that a run ended early because of [RunOptions.Terminate].
	ErrTerminated = errors.New("run terminated")
)

// ONNX Runtime has no error code for either case: an exhausted memory arrives as FAIL or
// RUNTIME_EXCEPTION, like most others. The texts are the library's, see errors_test.go.
var (
	outOfMemoryTexts = []string{
		"Failed to allocate memory for requested buffer of size", // the arena, device full
		"is smaller than requested bytes of",                     // the arena, at its cap
		"std::bad_alloc",                                         // host memory outside the arena
		"CUDA failure 2: ",                                       // cudaErrorMemoryAllocation
		"CUBLAS_STATUS_ALLOC_FAILED",
		"CUDNN_STATUS_ALLOC_FAILED",
	}
	terminatedText = "Exiting due to terminate flag being set to true"
)

// classify makes an error of a message of the library, with the sentinel it stands for.
func classify(message string) error {
	message = strings.TrimSpace(message)
	for _, text := range outOfMemoryTexts {
		if strings.Contains(message, text) {
			return fmt.Errorf("%w: %s", ErrOutOfMemory, message)
		}
	}
	if strings.Contains(message, terminatedText) {
		return ErrTerminated
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
