//go:build cuda

package cuda

// #include <cuda.h>
import "C"

import (
	"fmt"
	"reflect"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda/internal/driver"
)

// check makes an error of what a call of the driver's returned.
func check(call string, result C.CUresult) error {
	err := driver.Check(call, int(result))
	if result == C.CUDA_ERROR_OUT_OF_MEMORY {
		return outOfMemory{err}
	}
	return err
}

// outOfMemory matches gpu.ErrOutOfMemory and reads like any other error of the driver's.
type outOfMemory struct{ error }

func (outOfMemory) Is(target error) bool { return target == gpu.ErrOutOfMemory }

// wrap does what check does with an error of cu's. These are integers, CUresult, of a type that is not exported.
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
