// Package nvrtctest provides tests with a real NVRTC, which needs no GPU.
package nvrtctest

import (
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
)

// Open loads the library that XTTS_HOST_TEST_NVRTC names. Without the variable it loads that of this machine, and skips
// the test if there is none. scripts/test-cuda.sh fetches a library and sets the variable.
func Open(t testing.TB) *nvrtc.Compiler {
	t.Helper()
	file := os.Getenv("XTTS_HOST_TEST_NVRTC")
	c, err := nvrtc.Open(file)
	switch {
	case err == nil:
		return c
	case file == "":
		t.Skipf("this machine has no NVRTC: %v", err)
	}
	t.Fatal(err)
	return nil
}
