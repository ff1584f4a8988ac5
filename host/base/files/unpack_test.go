package files

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
)

var unpacked = fstest.MapFS{"a": {Data: []byte("one")}, "sub/b": {Data: []byte("two")}}

// right compares one file.
func right(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "sub", "b"))
	return err == nil && string(text) == "two"
}

func TestUnpack(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "not", "made", "yet")
	dir := filepath.Join(parent, "set-1")
	spoil := map[string]func() error{
		"absent":  func() error { return nil },
		"wrong":   func() error { return os.WriteFile(filepath.Join(dir, "sub", "b"), []byte("three"), 0o666) },
		"a file":  func() error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o666)) },
		"a right": func() error { return nil },
	}
	for _, name := range []string{"absent", "wrong", "a file", "a right"} {
		if err := spoil[name](); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(At(dir), unpacked, right); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !right(dir) {
			t.Errorf("%s: the folder is not right", name)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("%s: the folder also has %v, %v", name, entries, err)
		}
	}
}

// TestKilled: what a killed process has left goes, also where nothing is to be unpacked; that of one that still runs
// stays.
func TestUnpackKilled(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "set-1")
	if err := Unpack(At(dir), unpacked, right); err != nil {
		t.Fatal(err)
	}
	left, running := filepath.Join(parent, ".set-1.123.tmp"), filepath.Join(parent, ".set-1.456.tmp")
	for _, path := range []string{left, running} {
		if err := os.MkdirAll(filepath.Join(path, "new"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := At(running).LockEntry()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := Unpack(At(dir), unpacked, right); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what was left is there: %v", err)
	}
	if _, err := os.Stat(running); err != nil {
		t.Errorf("that of a running process is gone: %v", err)
	}
}

func TestUnpackAtTheSameTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set-1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := Unpack(At(dir), unpacked, right); err != nil || !right(dir) {
				t.Errorf("%v, right: %v", err, right(dir))
			}
		})
	}
	wg.Wait()
}
