package bundletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestMixed: the bundle is valid, and has its matrices in bf16. XTTS_HOST_TEST_MIXED names a folder to leave it in.
func TestMixed(t *testing.T) {
	b := Mixed(t, "../testdata/pico", "mel_head.weight")
	if !b.Manifest.HasPrecision(manifest.BF16) {
		t.Error("no bf16 graph")
	}
	for _, p := range b.Manifest.Parameters {
		if (p.Compute == manifest.BF16) != (len(p.Shape) > 1) {
			t.Errorf("%s of %d dimensions is %s", p.Name, len(p.Shape), p.Compute)
		}
	}
	got := b.Policy(manifest.BF16).Gradients
	if len(got) < 2 || got["mel_head.weight"] != manifest.F32 || got["stop_head.weight"] != "" {
		t.Errorf("gradients in f32: %v", got)
	}
	if folder := os.Getenv("XTTS_HOST_TEST_MIXED"); folder != "" {
		if err := os.CopyFS(folder, os.DirFS(b.Dir)); err != nil {
			t.Error(err)
		}
	}
}

// TestWithPlayers: each graph must have the outputs of its player, and no others.
func TestWithPlayers(t *testing.T) {
	first := func(name string) bool { return strings.HasPrefix(name, "text_encoder.") || name == "metric.stop_loss" }
	b := WithPlayers(t, "../testdata/pico", first, nil)
	g, ok := b.Manifest.TrainingGraph(Second, manifest.F32)
	if !ok || len(ortgraphs.NewArenas(b.Manifest, ortgraphs.Policy{})) != 2 {
		t.Errorf("graph %+v", g)
	}
	file := filepath.Join(b.Dir, ortgraphs.ManifestFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for old, other := range map[string]string{
		`"name":"mel_head.bias","shape":[20],"player":"second"`:                                  `"name":"mel_head.bias","shape":[20],"player":"first"`,
		`"name":"metric.stop_loss","dtype":"f32","shape":[],"player":"first"`:                    `"name":"metric.stop_loss","dtype":"f32","shape":[],"player":"second"`,
		`"file":"training_model.first.onnx","kind":"train","precision":"f32",`:                   `"file":"training_model.first.onnx","kind":"train","precision":"bf16",`,
		`"file":"training_model.second.onnx","kind":"train","precision":"f32","player":"second"`: `"file":"training_model.second.onnx","kind":"train","precision":"f32","player":"first"`,
	} {
		changed := strings.Replace(text, old, other, 1)
		if err := os.WriteFile(file, []byte(changed), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ortgraphs.Load(b.Dir); changed == text || err == nil || !strings.Contains(err.Error(), "player ") {
			t.Errorf("%s: %v", other, err)
		}
	}
}
