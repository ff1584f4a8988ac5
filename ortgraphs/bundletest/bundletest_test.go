package bundletest

import (
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestMixed: the bundle is valid, and has its matrices in bf16. XTTS_HOST_TEST_MIXED names a folder to leave it in.
func TestMixed(t *testing.T) {
	b := Mixed(t, "../testdata/pico", "mel_head.weight")
	if _, ok := b.Manifest.Graph("train", "bf16"); !ok {
		t.Error("no bf16 graph")
	}
	for _, p := range b.Manifest.Parameters {
		if (p.Compute == manifest.BF16) != (len(p.Shape) > 1) {
			t.Errorf("%s of %d dimensions is %s", p.Name, len(p.Shape), p.Compute)
		}
	}
	if got := b.Policy(manifest.BF16).Gradients; len(got) < 2 || got["mel_head.weight"] != manifest.F32 || got["stop_head.weight"] != "" {
		t.Errorf("gradients in f32: %v", got)
	}
	if folder := os.Getenv("XTTS_HOST_TEST_MIXED"); folder != "" {
		if err := os.CopyFS(folder, os.DirFS(b.Dir)); err != nil {
			t.Error(err)
		}
	}
}
