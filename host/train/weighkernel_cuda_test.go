package train

import "testing"

// TestWeighKernelMultiplies: on this GPU the kernel's products are right.
func TestWeighKernelMultiplies(t *testing.T) {
	needsGPU(t)
	m := newMemory(device(t))
	defer m.Close()
	if _, fault, err := newWeighKernel(&m); fault != nil || err != nil {
		t.Error(fault, err)
	}
}
