//go:build !fakegpu

package cuda

// Fake reports that this is a build for tests, whose libcuda keeps a GPU's memory on the host (scripts/cuda-fake.sh):
// there the CPU computes on it.
const Fake = false
