package train

import "testing"

// TestSquaresKernelSums: on this GPU the kernel's sums are right.
func TestSquaresKernelSums(t *testing.T) {
	needsGPU(t)
	m := newMemory(device(t))
	defer m.Close()
	if _, fault, err := newSquaresKernel(&m); fault != nil || err != nil {
		t.Error(fault, err)
	}
}
