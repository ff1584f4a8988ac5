package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
)

// loadKernels loads a module of kernels and sets those that are asked for by name. If the module, or one of them, is
// not for this GPU, the fault says so.
func (m *memory) loadKernels(ptx []byte, byName map[string]*gpu.Kernel) (fault, err error) {
	module, err := m.device.Context.NewModule(ptx)
	if err == nil {
		m.add(module.Close)
		for name, to := range byName {
			if *to, err = module.Kernel(name); err != nil {
				break
			}
		}
	}
	if errors.Is(err, gpu.ErrNoKernel) {
		return err, nil
	}
	return nil, err
}
