package featurecache

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// prepare makes a prepared folder with so many entries of 100 KiB, without a bound.
func prepare(t *testing.T, dir string, entries int) {
	t.Helper()
	c, err := Open(Config{
		Dir: dir, Flag: "--out", Limit: Unlimited, Prepare: true, Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range entries {
		if !c.Put(keyOf(fmt.Sprint(i)), make([]byte, 100<<10)) {
			t.Error("not written")
		}
	}
}

// TestPrepared: a prepared folder loses nothing to a run with a smaller bound, which is told of it once and adds
// nothing. Without the mark, the bound holds again.
func TestPrepared(t *testing.T) {
	dir, told := t.TempDir(), []int64(nil)
	prepare(t, dir, 30)
	cfg := Config{
		Dir: dir, Flag: flag, Limit: 1 << 20, Failed: func(err error) { t.Error(err) },
		Full: func(bytes int64) { told = append(told, bytes) },
	}
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.tasks.Wait()
	c.sweep()
	entries, total := held(c)
	if entries != 30 || len(told) != 1 || told[0] != total {
		t.Errorf("%d entries are left of 30; told %v of %d bytes", entries, told, total)
	}
	if c.Put(keyOf("new"), []byte{1}) {
		t.Error("an entry was added to a folder that is full")
	}
	if _, got := c.Get(keyOf("7"), nil); got != Hit {
		t.Error("an entry is not found")
	}
	c.Close()

	roomy := open(t, dir, Room(total))
	roomy.tasks.Wait()
	if !roomy.Put(keyOf("new"), []byte{1}) {
		t.Error("the bound that has room has none")
	}
	roomy.tasks.Wait()
	if err := os.Remove(filepath.Join(dir, preparedFile)); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 1<<20).tasks.Wait()
	if entries, total := held(roomy); total > 1<<20 {
		t.Errorf("without the mark, %d entries of %d bytes are left", entries, total)
	}
}

// TestPreparedAtTheSameTime: whoever marks a folder, its text is the same, and nothing is left over.
func TestPreparedAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { prepare(t, dir, 2) })
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(dir, preparedFile))
	left, lerr := os.ReadDir(filepath.Join(dir, incoming))
	if string(text) != preparedText || err != nil || len(left) > 0 || lerr != nil {
		t.Errorf("%q, %v, %d files left, %v", text, err, len(left), lerr)
	}
}
