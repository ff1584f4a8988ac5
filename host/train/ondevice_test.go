package train

import (
	"os"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// card is the UUID of the GPU that the tests compute on; without it they compute on the CPU.
var card = os.Getenv("XTTS_HOST_TEST_GPU")

// device is what the tests' models compute on: the CPU, or a GPU without TF32.
func device(t testing.TB) Device {
	if card == "" {
		return Device{}
	}
	runtime.LockOSThread() // for the test's goroutine, which ends with it
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var d Device
	var err error
	d.Context, err = cuda.Open(card)
	must(err)
	t.Cleanup(func() { must(d.Context.Close()) })
	must(d.Context.Bind())
	for _, s := range []*gpu.Stream{&d.Compute, &d.Transfer} {
		*s, err = d.Context.NewStream()
		must(err)
		t.Cleanup(func() { must((*s).Close()) })
	}
	d.Deterministic = true // tests compare bits
	d.CUDA = &ort.CUDA{
		Device: ort.Place(d.Context.Device().Index), Stream: d.Compute.Pointer(), Wait: d.Context.Synchronize,
	}
	return d
}

// needsGPU skips a test of the GPU's own kernels.
func needsGPU(t testing.TB) {
	if card == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
}

// isFake reports whether the GPU is of the fake driver, on which the CPU computes: scripts/cuda-fake.sh.
func isFake(d Device) bool { return d.Context.Device().Name == "Fake card" }
