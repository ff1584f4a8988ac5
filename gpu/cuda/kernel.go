//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"gorgonia.org/cu"
)

// kernel is the only used function of a CUmodule. Its zero value is a closed kernel.
type kernel struct {
	module   cu.Module
	function cu.Function
}

func (c *context) NewKernel(ptx, name string) (gpu.Kernel, error) {
	k, err := c.newKernel(ptx, name)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return k, nil
}

func (c *context) newKernel(ptx, name string) (*kernel, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	module, err := cu.LoadData(ptx)
	if err != nil {
		return nil, wrap("cuModuleLoadData", err)
	}
	function, err := module.Function(name)
	if err != nil {
		module.Unload() // may fail too; err has the reason
		return nil, wrap("cuModuleGetFunction", err)
	}
	return &kernel{module, function}, nil
}

func (k *kernel) Close() error {
	if *k == (kernel{}) {
		return nil
	}
	err := k.module.Unload()
	*k = kernel{}
	return during("close a kernel", wrap("cuModuleUnload", err))
}

func (s *stream) Launch(k gpu.Kernel, blocks, threads int, arguments ...uint64) error {
	err := s.open()
	own := k.(*kernel)
	if err == nil && *own == (kernel{}) {
		err = fmt.Errorf("kernel: %w", gpu.ErrClosed)
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
