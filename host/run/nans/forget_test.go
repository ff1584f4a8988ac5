package nans

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// TestForget: what later steps left goes, also if the run folder is reached through a link; a link in it that has such
// a name goes, and not what it leads to.
func TestForget(t *testing.T) {
	top := t.TempDir()
	run, link, other := filepath.Join(top, "run"), filepath.Join(top, "link"), filepath.Join(top, "other")
	if err := os.Mkdir(run, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		other, filepath.Join(run, rundir.NaNFile(3)), filepath.Join(run, rundir.NaNFile(4)), filepath.Join(run,
			"nan-mine.json"),
	} {
		if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(run, rundir.NaNFile(5))); err != nil {
		t.Fatal(err)
	}
	if err := forget(link, 3); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(run)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"nan-mine.json", rundir.NaNFile(3)}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if err := forget(filepath.Join(top, "none"), 3); err != nil {
		t.Error(err)
	}
}
