package cuda

// #include <cuda.h>
import "C"

import (
	"fmt"
	"reflect"

	"github.com/xtts-host/xtts-host/gpu"
)

// check returns an error for the result of a driver call.
func check(call string, result C.CUresult) error {
	if result == C.CUDA_SUCCESS {
		return nil
	}
	err := &failure{call, result}
	switch result {
	case C.CUDA_ERROR_OUT_OF_MEMORY:
		return known{err, gpu.ErrOutOfMemory}
	case C.CUDA_ERROR_INVALID_IMAGE, C.CUDA_ERROR_NO_BINARY_FOR_GPU, C.CUDA_ERROR_INVALID_PTX,
		C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
		C.CUDA_ERROR_JIT_COMPILATION_DISABLED:
		return known{err, gpu.ErrNoKernel}
	}
	return err
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

// known is an error of package gpu, with its exit status, and has the text of a driver error.
type known struct {
	error
	as error
}

func (k known) Unwrap() []error { return []error{k.error, k.as} }

// wrap is check for an error of cu. These are integers, CUresult, of an unexported type.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return check(call, C.CUresult(reflect.ValueOf(err).Int()))
}

// during prepends the operation to an error, if there is one.
func during(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
