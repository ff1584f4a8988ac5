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
	uuid := os.Getenv("XTTS_HOST_TEST_GPU")
	if uuid == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
	cache := t.TempDir() // products are of the library, so the programs of f32 are those of TF32
	for seed := range nightly.Of(10, uint64(100)) {
		for _, precision := range []string{"f32", "TF32", "bf16"} {
			t.Run(fmt.Sprintf("%d in %s", seed, precision), func(t *testing.T) {
				runtime.LockOSThread()
				context, err := cuda.Open(uuid)
				must(t, err)
				defer func() { must(t, context.Close()) }()
				must(t, context.Bind())
				card := context.Device()
				if card.Name == "Fake card" {
					t.Skip("the fake driver takes a second for each program")
				}
				stream, err := context.NewStream()
				must(t, err)
				defer func() { must(t, stream.Close()) }()
				compiler, err := New(context, Config{
					Capability: card.Capability, TF32: precision == "TF32",
					Library: cmp.Or(os.Getenv("XTTS_HOST_TEST_NVRTC"), ort.Library()), Cache: cache,
				}, slog.New(slog.DiscardHandler))
				must(t, err)
				prooftest.Deep{
					Seed: seed, TF32: precision == "TF32", Short: precision == "bf16", Compiler: compiler,
					Form: fused.Form{Capability: card.Capability},
					Session: ort.SessionConfig{CUDA: &ort.CUDA{
						Device: ort.Place(card.Index), Stream: stream.Pointer(), TF32: precision == "TF32",
						Wait: context.Synchronize,
					}},
				}.Check(t)
			})
		}
	}
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
