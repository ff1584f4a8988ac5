package featurecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// noTime is older than any entry.
var noTime = time.Unix(1, 0)

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// unmarked is a cache as versions without a marker left it, with some entries.
func unmarked(t *testing.T, entries int) *Cache {
	t.Helper()
	c := open(t, t.TempDir(), 1<<30)
	for i := range entries {
		c.Put(keyOf(fmt.Sprint(i)), make([]byte, 100<<10))
	}
	c.Close()
	if err := os.Remove(filepath.Join(c.Dir, cachedir.Marker)); err != nil {
		t.Fatal(err)
	}
	return c
}

// foreignFiles have the names of entries, but not their form, such as the objects of a git repository with SHA-256.
func foreignFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	for i := range 40 {
		path := (&Cache{Config: Config{Dir: dir}}).at(keyOf(fmt.Sprint("foreign", i))).String()
		put(t, path, make([]byte, 1<<20))
		if err := os.Chtimes(path, noTime, noTime); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// TestForeignFolder: a folder of someone else is refused, with a hint that works, and nothing in it changes.
func TestForeignFolder(t *testing.T) {
	for name, make := range map[string]func(dir string){
		"objects of git": func(dir string) { foreignFiles(t, dir); put(t, filepath.Join(dir, "pack", "x"), nil) },
		"loose objects":  func(dir string) { foreignFiles(t, dir) },
		"loose, and a lock": func(dir string) {
			foreignFiles(t, dir)
			put(t, filepath.Join(dir, "lock"), nil)
			os.Mkdir(filepath.Join(dir, incoming), 0o777)
		},
		"a project":     func(dir string) { put(t, filepath.Join(dir, "main.go"), nil) },
		"a hidden file": func(dir string) { put(t, filepath.Join(dir, ".bashrc"), nil) },
		"an incoming folder": func(dir string) {
			put(t, filepath.Join(dir, incoming, "feature-1.tmp"), nil)
			put(t, filepath.Join(dir, "mail"), nil)
		},
	} {
		dir := t.TempDir()
		make(dir)
		before := tree(t, dir)
		_, err := Open(Config{Dir: dir, Flag: flag, Limit: 1 << 20})
		if !errors.Is(err, cachedir.ErrForeign) || !errors.Is(Check(flag, dir), cachedir.ErrForeign) {
			t.Errorf("%s: %v, %v", name, err, Check(flag, dir))
			continue
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%s: changed from\n%s\nto\n%s", name, before, after)
		}
		_, advised, _ := strings.Cut(hint.Of(err), "--feature-cache ")
		c, err := Open(Config{Dir: advised, Flag: flag, Limit: 1 << 20})
		if err != nil {
			t.Errorf("%s: the hint does not work: %v", name, err)
			continue
		}
		c.Close()
	}
}

// TestOlderCache: a cache without a marker is used, and what only looks like an entry stays in it.
func TestOlderCache(t *testing.T) {
	c := unmarked(t, 30)
	foreign := foreignFiles(t, c.Dir)
	c = open(t, c.Dir, 2<<20)
	if _, got := c.Get(keyOf("29"), nil); got != Hit {
		t.Error("the entries are lost")
	}
	c.tasks.Wait()
	c.sweep()
	for _, path := range foreign {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	left := 0
	for i := range 30 {
		if _, err := os.Stat(c.at(keyOf(fmt.Sprint(i))).String()); err == nil {
			left++
		}
	}
	if left > 0 {
		t.Errorf("%d entries are left, though the folder is above its bound", left)
	}
}

// TestLinks: a sweep removes nothing through a link, and nothing from a folder whose marker has gone.
func TestLinks(t *testing.T) {
	c := open(t, t.TempDir(), 1<<20)
	c.tasks.Wait()
	elsewhere := t.TempDir()
	foreign := foreignFiles(t, elsewhere)
	for _, path := range foreign {
		folder := filepath.Base(filepath.Dir(path))
		os.Symlink(filepath.Join(elsewhere, folder), filepath.Join(c.Dir, folder))
	}
	c.sweep()
	for i := range 40 { // what has to go there is not written
		if key := keyOf(fmt.Sprint("foreign", i)); c.write(key, []byte("through a link")) == nil {
			t.Error("an entry was written through a link")
		}
	}
	for _, path := range foreign {
		if info, err := os.Stat(path); err != nil || info.Size() != 1<<20 || !info.ModTime().Equal(noTime) {
			t.Errorf("%s was changed through a link: %v", path, err)
		}
	}
	inside := c.at(keyOf("inside")).String()
	put(t, inside, make([]byte, 4<<20))
	if err := os.Remove(filepath.Join(c.Dir, cachedir.Marker)); err != nil {
		t.Fatal(err)
	}
	c.sweep()
	for _, path := range append(foreign, inside) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// tree lists the files of a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	if err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		names = append(names, fmt.Sprint(path, info.ModTime(), info.Size()))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}
