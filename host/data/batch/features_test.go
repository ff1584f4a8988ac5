package batch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestIdentities: whatever the rows of a stage depend on is part of its identity, and nothing else is.
func TestIdentities(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "tones", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	stage := pairs
	contract, on := manifest.Features{SampleRate: 22050}, "cpu"
	identity := func() [32]byte {
		t.Helper()
		entries, err := catalog.Scan(dir)
		if err != nil || len(entries) != 1 || !entries[0].Startable() {
			t.Fatal(entries, err)
		}
		f, err := NewFeatures(nil, &catalog.Resolved{Plugins: entries, Instances: []catalog.Instance{stage}}, contract,
			on)
		if err != nil {
			t.Fatal(err)
		}
		return f.identities[0]
	}
	write("plugin.json",
		`{"id": "tones", "version": "1", "protocol": 1, "argv": ["sh", "main.py"], "stages": [{"name": "pairs", "kind": "preprocess", "deterministic": true,
		"inputs": [{"name": "x", "dtype": "i32", "shape": ["B"]}], "outputs": [{"name": "y", "dtype": "i32", "shape": ["B"]}]}]}`)
	write("main.py", "import helper")
	write("helper.py", "x = 1")
	seen := map[[32]byte]string{identity(): "nothing changed"}
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"a file that no sum lists", func() { write("helper.py", "x = 2") }},
		{"a file in a folder", func() { write("tables/a.npy", "1") }},
		{"the configuration", func() { stage.Config = map[string]any{"width": 2} }},
		{"a file of the bundle", func() { stage.Files = map[string]string{"codes.onnx": "ab12"} }},
		{"its content", func() { stage.Files = map[string]string{"codes.onnx": "cd34"} }},
		{"the stage", func() { stage.Stage.Name = "triples" }},
		{"the feature contract", func() { contract.SampleRate = 24000 }},
		{"the device", func() { on = "GPU, onnxruntime 1" }},
		{"a variable of plugins", func() { t.Setenv("XTTS_PLUGIN_X", "1") }},
	} {
		c.change()
		id := identity()
		if before, ok := seen[id]; ok {
			t.Errorf("%s: the identity is that of %s", c.what, before)
		}
		seen[id] = c.what
	}
	last := identity()
	write("__pycache__/helper.pyc", "compiled")
	t.Setenv("SHELL", "/bin/other")
	if identity() != last {
		t.Error("what stages do not depend on changes their identity")
	}
}
