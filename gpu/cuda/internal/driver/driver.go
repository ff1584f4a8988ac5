//go:build cuda

// Package driver starts the CUDA driver, and returns the names of its errors.
//
// Package cu starts the driver too, and on failure ends the program with an unhelpful line on standard output. Of the
// packages that are ready for initialization, Go initializes the one whose path sorts first ("The Go Programming
// Language Specification", "Program initialization"): this one before gorgonia.org/cu. To be ready in time, it imports
// only packages that cu imports.
package driver

// #include <cuda.h>
import "C"

import (
	"fmt"
	"os"
)

func init() {
	keepCache()
	if err := Check("cuInit", int(C.cuInit(0))); err != nil {
		fmt.Fprintf(os.Stderr, "error: this program is built with CUDA, but the NVIDIA driver does not start: %v\n", err)
		fmt.Fprintln(os.Stderr, "hint: see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or build without CUDA: make build CUDA=0")
		os.Exit(1)
	}
}

// keepCache makes the driver keep compiled kernels in this program's cache folder instead of ~/.nv. Plugins inherit the
// setting.
func keepCache() {
	const variable = "CUDA_CACHE_PATH"
	if os.Getenv(variable) != "" {
		return
	}
	if dir, err := os.UserCacheDir(); err == nil {
		os.Setenv(variable, dir+"/xtts-host/cuda")
	}
}

// Check returns an error for the result of a driver call, a CUresult, or nil for CUDA_SUCCESS.
func Check(call string, result int) error {
	if result == C.CUDA_SUCCESS {
		return nil
	}
	return &failure{call, C.CUresult(result)}
}

// failure is a failed call.
type failure struct {
	call   string
	result C.CUresult
}

func (f *failure) Error() string {
	var name *C.char
	if C.cuGetErrorName(f.result, &name) != C.CUDA_SUCCESS || name == nil {
		return fmt.Sprintf("%s: CUDA error %d", f.call, int(f.result))
	}
	return fmt.Sprintf("%s: %s (%d)", f.call, C.GoString(name), int(f.result))
}
