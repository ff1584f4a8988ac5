package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/archive"
)

// TestComesWithProgram: only the plugins of the program need no signature, and none that was installed in their place.
func TestComesWithProgram(t *testing.T) {
	built, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"augment", "other"} {
		if err := os.Mkdir(filepath.Join(built, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	comes := func(name string, state State) bool {
		e := Entry{Dir: filepath.Join(built, name), State: state, Manifest: testEntries()[0].Manifest}
		m := *e.Manifest
		m.ID, e.Manifest = name, &m
		return e.comesWith(built)
	}
	if !comes("augment", Verified) || comes("augment", Unverified) || comes("other", Verified) {
		t.Error("not the plugins of the program")
	}
	if err := os.Mkdir(filepath.Join(built, "augment", archive.Record), 0o777); err != nil {
		t.Fatal(err)
	}
	if comes("augment", Verified) {
		t.Error("a plugin that was installed is taken for one of the program")
	}
}
