//go:build cuda

package cuda

// #include <cuda.h>
import "C"

import (
	"fmt"
	"reflect"

	"github.com/xtts-host/xtts-host/gpu"
)

// failure is a call of the driver's that failed.
type failure struct {
	call string
	code C.CUresult
}

func (f *failure) Error() string {
	var name *C.char
	if C.cuGetErrorName(f.code, &name) != C.CUDA_SUCCESS || name == nil {
		return fmt.Sprintf("%s: CUDA error %d", f.call, int(f.code))
	}
	return fmt.Sprintf("%s: %s (%d)", f.call, C.GoString(name), int(f.code))
}

func (f *failure) Is(target error) bool {
	return target == gpu.ErrOutOfMemory && f.code == C.CUDA_ERROR_OUT_OF_MEMORY
}

// check makes an error of what a call of our own returned.
func check(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return &failure{call, code}
}

// wrap does the same with an error of cu's. These are integers, CUresult, of a type that is not exported.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return check(call, C.CUresult(reflect.ValueOf(err).Int()))
}

// during puts what was being done before an error, if there is one.
func during(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
