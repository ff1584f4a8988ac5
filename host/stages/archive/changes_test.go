package archive

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// TestAdded: an environment may be a link to a folder. Other files that are added count, also hidden ones.
func TestAdded(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{".git", "lib", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".gitignore", ".git/config", "lib/helper.py"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		".venv": "elsewhere", "code": "elsewhere", ".hidden": "lib/helper.py", ".nowhere": "nothing",
	} {
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := new(Index).changes(files.In(dir))
	want := []string{
		".gitignore was added", ".hidden was added", ".nowhere was added", "code was added", "lib/helper.py was added",
	}
	if err != nil || !slices.Equal(got, want) || !OnlyAdded(got) || OnlyAdded([]string{"run has changed"}) {
		t.Errorf("%q, %v\nwant %q", got, err, want)
	}
}
