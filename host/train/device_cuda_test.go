//go:build cuda

package train

import (
	"os"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// device is what the tests' models compute on: the GPU whose UUID the environment names, without TF32. On the fake
// driver the CPU computes with the driver's memory.
func device(t testing.TB) Device {
	uuid := os.Getenv("XTTS_HOST_TEST_GPU")
	if uuid == "" {
		t.Fatal("XTTS_HOST_TEST_GPU names no GPU")
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
	d.Context, err = cuda.Open(uuid)
	must(err)
	t.Cleanup(func() { must(d.Context.Close()) })
	must(d.Context.Bind())
	for _, s := range []*gpu.Stream{&d.Compute, &d.Transfer} {
		*s, err = d.Context.NewStream()
		must(err)
		t.Cleanup(func() { must((*s).Close()) })
	}
	d.Deterministic = true // tests compare bits
	if !cuda.Fake {
		d.CUDA = &ort.CUDA{Device: ort.Place(d.Context.Device().Index), Stream: d.Compute.Pointer(), Wait: d.Context.Synchronize}
	}
	return d
}
