package ortgraphs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
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

// TestLoadFollowsLinks: a file may be anywhere if its content is the one that the manifest names, and only then.
func TestLoadFollowsLinks(t *testing.T) {
	store := t.TempDir()
	for name, c := range map[string]struct {
		replace      func(path string) error
		reason, hint string // of the fault; "" for none
	}{
		"linked": {func(path string) error {
			blob := filepath.Join(store, "blob")
			return errors.Join(os.Rename(path, blob), os.Symlink(blob, path))
		}, "", ""},
		"linked twice": {func(path string) error {
			a, b := filepath.Join(store, "a"), filepath.Join(store, "b")
			return errors.Join(os.Rename(path, a), os.Symlink("a", b), os.Symlink(b, path))
		}, "", ""},
		"linked to another file": {func(path string) error {
			blob := filepath.Join(store, "other")
			return errors.Join(os.WriteFile(blob, []byte("x"), 0o666), os.Remove(path), os.Symlink(blob, path))
		}, "its SHA-256 is", "copy the folder again"},
		"git-annex": {func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("../.git/annex/objects/x/SHA256E-s1--0", path))
		}, "is not there", "git annex get ."},
		"DVC": {func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path+".dvc", nil, 0o666)) },
			"DVC has not fetched it", "dvc pull"},
		"DVC with links": {func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/nowhere/.dvc/cache/files/md5/00/1", path))
		}, "is not there", "dvc pull"},
		"huggingface_hub": {func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("../../blobs/00", path))
		},
			"is not there", "download the bundle again"},
		"dangling": {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) },
			"a link to nowhere, which is not there", "cp -rL"},
		"Git LFS": {func(path string) error {
			return os.WriteFile(path, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
				0o666)
		}, "a pointer of Git LFS", "git lfs pull"},
		"git-annex, unlocked": {
			func(path string) error { return os.WriteFile(path, []byte("/annex/objects/SHA256E-s1--0\n"), 0o666) },
			"a pointer of git-annex", "git annex get .",
		},
		"a loop": {
			func(path string) error { return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)) },
			"too many levels", "copy the folder again",
		},
		"folder in place of a file": {
			func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
			"not a regular file", "copy the folder again",
		},
	} {
		for _, file := range []string{WeightsFile, ManifestFile} {
			dir := newFixture().write(t)
			if err := c.replace(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir)
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("%s: %s: %v", name, file, err)
			case c.reason != "" && err == nil:
				t.Errorf("%s: %s is accepted", name, file)
			case file == WeightsFile && c.reason != "" &&
				(!strings.Contains(err.Error(), c.reason) || !strings.Contains(hint.Of(err), c.hint)):
				t.Errorf("%s: %s: %v (%s)", name, file, err, hint.Of(err))
			}
			os.RemoveAll(store)
			os.Mkdir(store, 0o777)
		}
	}
}

// TestFetchHub: the hint names the snapshot.
func TestFetchHub(t *testing.T) {
	got := fetchHub("/home/me/.cache/huggingface/hub/models--anna--my-voice/snapshots/0a1b")
	if got != "download it again: hf download anna/my-voice --revision 0a1b" {
		t.Error(got)
	}
}

func TestOpenOfNoBundle(t *testing.T) {
	empty := t.TempDir()
	for _, spec := range []string{filepath.Join(empty, "none"), empty, "myxtts-nano"} {
		_, err := Open(spec, "")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", spec, err)
		}
		if !strings.Contains(hint.Of(err), "builtin:myxtts-nano") {
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
