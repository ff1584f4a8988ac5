//go:build cuda

// Package driver starts the CUDA driver, and gives its errors their names.
//
// Package cu starts the driver too, and on failure ends the program with a line on standard output that helps nobody. Of the
// packages that are ready for it Go initializes the one whose path sorts first ("The Go Programming Language Specification",
// "Program initialization"): this one before gorgonia.org/cu. To be ready no later than that it imports nothing that cu does not.
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
		fmt.Fprintf(os.Stderr, "error: this program is built with CUDA, and the NVIDIA driver does not start: %v\n", err)
		fmt.Fprintln(os.Stderr, "hint: see what nvidia-smi and CUDA_VISIBLE_DEVICES say, or build without CUDA: make build CUDA=0")
		os.Exit(1)
	}
}

// keepCache has the driver keep the kernels that it compiles where this program keeps what it can do without, not in ~/.nv. Plugins
// inherit it.
func keepCache() {
	const variable = "CUDA_CACHE_PATH"
	if os.Getenv(variable) != "" {
		return
	}
	if dir, err := os.UserCacheDir(); err == nil {
		os.Setenv(variable, dir+"/xtts-host/cuda")
	}
}

// Check makes an error of what a call of the driver's returned, a CUresult; nil of CUDA_SUCCESS.
func Check(call string, result int) error {
	if result == C.CUDA_SUCCESS {
		return nil
	}
	return &failure{call, C.CUresult(result)}
}

// failure is a call that failed.
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
