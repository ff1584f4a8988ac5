package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write writes files below a folder, and links, which are written as "name -> what it leads to".
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, to, link := strings.Cut(name, " -> ")
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o777)
		if link && err == nil {
			err = os.Symlink(to, at)
		} else if err == nil {
			err = os.WriteFile(at, nil, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func list(root string) (names []string, err error) {
	err = Walk(Disk{os.ReadDir, os.Stat}, root, func(name string, _ fs.FileInfo, err error) error {
		if err != nil {
			name += "?"
		}
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return names, err
}

// TestWalk: links are followed, the folder itself too, but not back; hidden files and lost+found are left out.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real/a", "real/b/c", "real/.hidden", "real/.git/d", "real/lost+found/e", "far/f",
		"real/far -> ../far", "real/f -> ../far/f", "real/b/up -> ..", "real/self -> self", "link -> real")
	got, err := list(filepath.Join(dir, "link"))
	if want := []string{"a", "b/c", "f", "far/f", "self?"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := list(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a list")
	}
}

func TestDeep(t *testing.T) {
	dir := t.TempDir()
	deep := strings.Repeat("x/", MaxDepth-1)
	write(t, dir, deep+"a")
	if got, err := list(dir); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	write(t, dir, deep+"x/b")
	if _, err := list(dir); err == nil || !strings.HasSuffix(err.Error(), "more than 32 folders deep") {
		t.Error(err)
	}
}
