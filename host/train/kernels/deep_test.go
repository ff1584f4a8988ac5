package kernels

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// TestDeepNetworksGPU is TestDeepNetworks of ortgraphs/fused on a GPU: ten networks in one process.
func TestDeepNetworksGPU(t *testing.T) {
	cache := t.TempDir() // products are of the library, so the programs of f32 are those of TF32
	for seed := range nightly.Of(10, uint64(100)) {
		for _, precision := range []string{"f32", "TF32", "bf16"} {
			t.Run(fmt.Sprintf("%d in %s", seed, precision), func(t *testing.T) {
				d := prooftest.Deep{Seed: seed, TF32: precision == "TF32", Short: precision == "bf16"}
				d.Compiler, d.Form, d.Session = onGPU(t, d.TF32, cache)
				d.Check(t)
			})
		}
	}
}

// TestConvolutionsGPU: cuDNN computes convolutions and their gradients as the nodes that they replace do, in each
// precision. Signals are handled as before.
func TestConvolutionsGPU(t *testing.T) {
	cache := t.TempDir()
	for _, precision := range []string{"f32", "TF32", "bf16"} {
		t.Run(precision, func(t *testing.T) {
			c := prooftest.Convolutions{TF32: precision == "TF32", Short: precision == "bf16"}
			c.Compiler, c.Form, c.Session = onGPU(t, c.TF32, cache)
			before := orttest.Handlers()
			c.Form.WindowBytes = 1
			c.Check(t)
			if after := orttest.Handlers(); after != before {
				t.Errorf("signals are handled with the flags %x, before with %x", after, before)
			}
		})
	}
}

// onGPU returns a compiler for the GPU of the suite, and what plans and sessions need there, until the test ends. It
// skips the test if there is none.
func onGPU(t *testing.T, tf32 bool, cache string) (fused.Compiler, fused.Form, ort.SessionConfig) {
	t.Helper()
	uuid := os.Getenv("XTTS_HOST_TEST_GPU")
	if uuid == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
	runtime.LockOSThread()
	context, err := cuda.Open(uuid)
	must(t, err)
	t.Cleanup(func() { must(t, context.Close()) })
	must(t, context.Bind())
	card := context.Device()
	if card.Name == "Fake card" {
		t.Skip("the fake driver takes a second for each program")
	}
	stream, err := context.NewStream()
	must(t, err)
	t.Cleanup(func() { must(t, stream.Close()) })
	compiler, err := New(context, Config{
		Capability: card.Capability, TF32: tf32, Cache: cache,
		Library: cmp.Or(os.Getenv("XTTS_HOST_TEST_NVRTC"), ort.Library()),
	}, slog.New(slog.DiscardHandler))
	must(t, err)
	var form fused.Form
	compiler.SetGPU(&form)
	return compiler, form, ort.SessionConfig{CUDA: &ort.CUDA{
		Device: ort.Place(card.Index), Stream: stream.Pointer(), TF32: tf32, Wait: context.Synchronize,
	}}
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
