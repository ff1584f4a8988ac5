package featurecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func keyOf(text string) Key { return sha256.Sum256([]byte(text)) }

const flag = "--feature-cache"

func open(t *testing.T, dir string, limit int64) *Cache {
	t.Helper()
	c, err := Open(Config{Dir: dir, Flag: flag, Limit: limit, Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestEntry(t *testing.T) {
	c, key, data := open(t, t.TempDir(), 1<<30), keyOf("a"), []byte("features")
	if _, got := c.Get(key, nil); got != Miss {
		t.Errorf("before Put: %v", got)
	}
	for range 2 {
		if !c.Put(key, data) {
			t.Error("not written")
		}
	}
	buf, got := c.Get(key, []byte("before "))
	if got != Hit || string(buf) != "before features" {
		t.Errorf("%v %q", got, buf)
	}
	if _, got := open(t, c.Dir, 1<<30).Get(key, nil); got != Hit {
		t.Errorf("in another process: %v", got)
	}
}

// TestDamage: nothing that happens to a file of an entry is taken for its data, and Put mends it.
func TestDamage(t *testing.T) {
	c, key, data := open(t, t.TempDir(), 1<<30), keyOf("a"), bytes.Repeat([]byte{7}, 5000)
	path := c.at(key).String()
	read := func() []byte {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	replace := func(by func()) func() {
		return func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			by()
		}
	}
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, harm := range map[string]func(){
		"a bit":        func() { w := read(); w[4000] ^= 1; write(w) },
		"the checksum": func() { w := read(); w[len(w)-1] ^= 1; write(w) },
		"cut off":      func() { write(read()[:4096]) },
		"empty":        func() { write(nil) },
		"longer":       func() { write(append(read(), 0)) },
		"of another key": func() {
			other := keyOf("b")
			c.Put(other, data)
			if err := os.Rename(c.at(other).String(), path); err != nil {
				t.Fatal(err)
			}
		},
		"a pipe": replace(func() {
			if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
		}),
	} {
		c.Put(key, data)
		harm()
		if buf, got := c.Get(key, []byte{1}); got != Damaged || len(buf) != 1 {
			t.Errorf("%s: %v, %d bytes", name, got, len(buf))
		}
		if !c.Put(key, data) {
			t.Errorf("%s: not written", name)
		}
		if buf, got := c.Get(key, nil); got != Hit || !bytes.Equal(buf, data) {
			t.Errorf("%s: repaired: %v", name, got)
		}
	}
}

// TestBound: the folder keeps its bound, and what was used last stays. Files that are no entries stay, too.
func TestBound(t *testing.T) {
	const entry, limit = 100 << 10, 10 << 20
	dir := t.TempDir()
	open(t, dir, limit).Close()
	foreign := filepath.Join(dir, "00", "notes.txt")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, make([]byte, 20<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, incoming, "feature-1.tmp")
	if err := os.WriteFile(old, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*abandoned)); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, limit)
	favourite := keyOf("favourite")
	for i := range 300 {
		c.Put(keyOf(fmt.Sprint(i)), make([]byte, entry))
		if i == 0 {
			c.Put(favourite, make([]byte, entry))
		}
		if _, got := c.Get(favourite, nil); got != Hit {
			t.Fatalf("after %d: the entry that is used all the time was removed", i)
		}
		c.tasks.Wait()
		if _, total := held(c); total > limit {
			t.Fatalf("%d bytes after %d entries", total, i)
		}
	}
	entries, total := held(c)
	if total < limit*8/10 || c.measure(-1) != total {
		t.Errorf("%d entries of %d bytes, %d by its own count", entries, total, c.measure(-1))
	}
	if _, got := c.Get(keyOf("299"), nil); got != Hit {
		t.Error("the newest entry was removed")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an abandoned file was left")
	}
	if c.Put(favourite, make([]byte, limit/2)) {
		t.Error("an entry of half of the bound was written")
	}
}

// held counts the entries of a folder and their bytes.
func held(c *Cache) (entries int, total int64) {
	c.each(func(e entry) bool { entries, total = entries+1, total+e.size; return true })
	return entries, total
}

// TestBytes: the size of the folder is what lies on disk: an entry that is written again counts once, and those of
// other processes count. Where there is no time to look, an entry that this process has written again counts once, too.
func TestBytes(t *testing.T) {
	dir := t.TempDir()
	c, other := open(t, dir, 10<<20), open(t, dir, 10<<20)
	c.tasks.Wait() // the sweep of an empty folder
	for range 3 {
		c.Put(keyOf("a"), make([]byte, 100<<10))
		c.Put(keyOf("b"), make([]byte, 10<<10))
	}
	c.Put(keyOf("b"), make([]byte, 50<<10))
	_, want := held(c)
	if c.Bytes() != want || c.measure(-1) != want || want < 150<<10 {
		t.Errorf("%d bytes by looking, %d by counting, %d on disk", c.Bytes(), c.measure(-1), want)
	}
	if c.Written() <= want {
		t.Errorf("%d bytes were written", c.Written())
	}
	other.Put(keyOf("c"), make([]byte, 200<<10))
	if _, all := held(c); c.Bytes() != all || all < want+200<<10 {
		t.Errorf("%d bytes with those of another process, %d on disk", c.Bytes(), all)
	}
}

// TestManyAtOnce: caches of one folder write, read, and sweep at the same time.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		c := open(t, dir, 4<<20)
		all.Go(func() {
			var buf []byte
			for i := range 200 {
				key, data := keyOf(fmt.Sprint(i%60)), bytes.Repeat([]byte{byte(i % 60)}, 90<<10)
				got, result := c.Get(key, buf[:0])
				if result == Damaged || result == Hit && !bytes.Equal(got, data) {
					t.Errorf("entry %d: %v, %d bytes", i, result, len(got))
				}
				if buf = got; result != Hit {
					c.Put(key, data)
				}
			}
		})
	}
	all.Wait()
}

// TestFailure: one warning, and the folder is left alone for a while.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	var warnings []string
	c, err := Open(Config{Dir: dir, Flag: flag, Limit: 1 << 30, Failed: func(err error) {
		warnings = append(warnings, err.Error())
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	key := keyOf("a")
	block := filepath.Join(dir, hex.EncodeToString(key[:1]))
	if err := os.WriteFile(block, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c.Put(key, []byte{1}) {
			t.Error("written")
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], block) {
		t.Errorf("warnings %q", warnings)
	}
	if left, err := os.ReadDir(filepath.Join(dir, incoming)); err != nil || len(left) > 0 {
		t.Errorf("%d files left, %v", len(left), err)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if c.Put(key, []byte{1}) {
		t.Error("written at once after a failure")
	}
	c.suspended.Store(0)
	if !c.Put(key, []byte{1}) {
		t.Error("not written after the pause")
	}
	c.tasks.Wait()                            // the sweep makes a file
	if err := os.RemoveAll(dir); err != nil { // under the run
		t.Fatal(err)
	}
	if !c.Put(key, []byte{1}) {
		t.Errorf("not written to a folder that was removed: %q", warnings)
	}
}
