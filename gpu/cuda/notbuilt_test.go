//go:build !cuda

package cuda_test

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
)

func TestNotBuilt(t *testing.T) {
	c, opened := cuda.Open("GPU-1")
	v, asked := cuda.DriverVersion()
	if c != nil || v != "" || cuda.Built {
		t.Errorf("a build without CUDA has %v, %q, Built %v", c, v, cuda.Built)
	}
	for want, err := range map[string]error{
		"open GPU GPU-1: this build has no CUDA":                    opened,
		"ask for the CUDA driver's version: this build has no CUDA": asked,
	} {
		if !errors.Is(err, gpu.ErrNotBuilt) || err.Error() != want {
			t.Errorf("error %q, want %q, as gpu.ErrNotBuilt", err, want)
		}
		var h interface{ Hint() string }
		if !errors.As(err, &h) || h.Hint() != "build with CUDA: make build CUDA=1" {
			t.Errorf("%q has no hint", err)
		}
	}
}
