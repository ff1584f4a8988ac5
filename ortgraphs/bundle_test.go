package ortgraphs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestLoad(t *testing.T) {
	dir := newFixture().write(t)
	b, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b.Manifest.Name != "tiny" || b.Path("x") != filepath.Join(dir, "x") {
		t.Errorf("name %q, path %q", b.Manifest.Name, b.Path("x"))
	}
	w, err := b.Weights()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if len(w.Tensors()) != 3 {
		t.Errorf("%d weights, want 3", len(w.Tensors()))
	}
}

func TestLoadExportedBundle(t *testing.T) {
	b, err := Open("testdata/pico", "")
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(b.Dir) {
		t.Errorf("%s is not absolute", b.Dir)
	}
}

// Nothing outside the folder is read, regardless of its name.
func TestLoadStaysInTheFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "weights")
	for name, replace := range map[string]func(path string) error{
		"link out of the folder": func(path string) error {
			return errors.Join(os.Rename(path, outside), os.Symlink(outside, path))
		},
		"folder in place of a file": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
	} {
		dir := newFixture().write(t)
		if err := replace(filepath.Join(dir, WeightsFile)); err != nil {
			t.Fatal(err)
		}
		var invalid *InvalidError
		if _, err := Load(dir); !errors.As(err, &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].File != WeightsFile {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenOfNoBundle(t *testing.T) {
	empty := t.TempDir()
	for _, spec := range []string{filepath.Join(empty, "none"), empty, "myxtts-nano"} {
		_, err := Open(spec, "")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", spec, err)
		}
		hint, ok := err.(interface{ Hint() string })
		if !ok || !strings.Contains(hint.Hint(), "builtin:myxtts-nano") {
			t.Errorf("%s: no hint in %v", spec, err)
		}
	}
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, ManifestFile), []byte(`{"version": 1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(bad); err == nil || !strings.Contains(err.Error(), filepath.Join(bad, ManifestFile)) {
		t.Errorf("a broken %s gave %v", ManifestFile, err)
	}
}

func TestHash(t *testing.T) {
	load := func(change func(*manifest.Bundle)) string {
		t.Helper()
		f := newFixture()
		change(f.manifest)
		b, err := Load(f.write(t))
		if err != nil {
			t.Fatal(err)
		}
		return b.Hash()
	}
	want := load(func(*manifest.Bundle) {})
	for name, change := range map[string]func(*manifest.Bundle){
		"description": func(m *manifest.Bundle) { m.Description = "x" },
		"cost":        func(m *manifest.Bundle) { m.Cost = nil },
		"nodes":       func(m *manifest.Bundle) { m.Graphs[0].Nodes = nodes() },
		"aliases":     func(m *manifest.Bundle) { m.Parameters[0].Aliases = []string{"x"} },
		"learning rate": func(m *manifest.Bundle) {
			m.Optimizer.LR = 7 // a default, which a run records itself
		},
	} {
		if load(change) != want {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, change := range map[string]func(*manifest.Bundle){
		"buckets":      func(m *manifest.Bundle) { m.Buckets = m.Buckets[1:]; m.Cost = nil },
		"pad":          func(m *manifest.Bundle) { m.Inputs[0].Pad = 1 },
		"accumulation": func(m *manifest.Bundle) { m.Accumulation = "mean" },
		"decay":        func(m *manifest.Bundle) { m.Parameters[1].Decay = true },
	} {
		if load(change) == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
	f := newFixture()
	f.weights[0].Data[0] = 1
	b, err := Load(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if b.Hash() == want {
		t.Error("other weights do not change the hash")
	}
}
