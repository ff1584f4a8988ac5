package cuda

// #include <cuda.h>
// #include <stdlib.h>
// #include "libcuda/libcuda.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"gorgonia.org/cu"
)

// module is a CUmodule. Its zero value is a closed module.
type module struct{ loaded cu.Module }

// kernel is a CUfunction of a module.
type kernel struct {
	module   *module
	function cu.Function
}

func (c *context) NewModule(image []byte) (gpu.Module, error) {
	err := c.open()
	if err == nil {
		var loaded cu.Module
		if loaded, err = cu.LoadData(string(image)); err == nil {
			return &module{loaded}, nil
		}
		err = wrap("cuModuleLoadData", err)
	}
	return nil, fmt.Errorf("load kernels: %w", err)
}

func (c *context) LaunchAddress() uintptr { return address("cuLaunchKernel") }

func (c *context) CooperativeLaunchAddress() uintptr { return address("cuLaunchCooperativeKernel") }

// address is that of a function of the driver.
func address(function string) uintptr {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	return uintptr(C.xtts_cuda_function(name))
}

func (m *module) open() error {
	if *m == (module{}) {
		return fmt.Errorf("kernels: %w", gpu.ErrClosed)
	}
	return nil
}

func (m *module) Kernel(name string) (gpu.Kernel, error) {
	err := m.open()
	if err == nil {
		var function cu.Function
		if function, err = m.loaded.Function(name); err == nil {
			return &kernel{m, function}, nil
		}
		err = wrap("cuModuleGetFunction", err)
	}
	return nil, fmt.Errorf("kernel %s: %w", name, err)
}

func (m *module) Close() error {
	if m.open() != nil {
		return nil
	}
	err := m.loaded.Unload()
	*m = module{}
	return during("unload kernels", wrap("cuModuleUnload", err))
}

func (k *kernel) SetShared(bytes int) error {
	err := k.module.open()
	if err == nil {
		err = check("cuFuncSetAttribute", C.cuFuncSetAttribute(*(*C.CUfunction)(unsafe.Pointer(&k.function)),
			C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
	}
	return during("set the shared memory of a kernel", err)
}

// Pointer reads the CUfunction from cu's struct, whose only field it is.
func (k *kernel) Pointer() uintptr { return *(*uintptr)(unsafe.Pointer(&k.function)) }

func (s *stream) Launch(k gpu.Kernel, blocks, threads int, arguments ...uint64) error {
	err := s.open()
	own := k.(*kernel)
	if err == nil {
		err = own.module.open()
	}
	if err == nil {
		places := make([]unsafe.Pointer, len(arguments))
		for i := range arguments {
			places[i] = unsafe.Pointer(&arguments[i])
		}
		err = wrap("cuLaunchKernel", own.function.Launch(blocks, 1, 1, threads, 1, 1, 0, s.queue, places))
	}
	return during("launch a kernel", err)
}
