package files

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stale reads once from a file that its server has forgotten, and then as b is read.
func stale(f *File, b []byte) (int, error) {
	first := true
	return f.read(func(open *os.File) (int, error) {
		if first {
			first = false
			return 0, unix.ESTALE
		}
		return open.ReadAt(b, 0)
	})
}

// TestReopen: after ESTALE the file is opened again, also while others read it, but another file of its name and size
// is not read.
func TestReopen(t *testing.T) {
	defer WaitWith(NewPatience(time.Second, nil))()
	name := filepath.Join(t.TempDir(), "file")
	write := func(text string) *File {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := write("old")
	var wait sync.WaitGroup
	began := make(chan struct{})
	wait.Go(func() {
		_, err := f.read(func(open *os.File) (int, error) {
			close(began)
			for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
				if n, err := open.ReadAt(make([]byte, 3), 0); n != 3 {
					return n, err
				}
			}
			return 3, nil
		})
		if err != nil {
			t.Errorf("another reader: %v", err)
		}
	})
	<-began
	before := f.open.Load()
	b := make([]byte, 3)
	if n, err := stale(f, b); n != 3 || err != nil || f.open.Load() == before {
		t.Errorf("%d bytes, %v, opened again: %v", n, err, f.open.Load() != before)
	}
	wait.Wait()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := before.Stat(); err == nil {
		t.Error("the stale file is still open")
	}

	f = write("old")
	defer f.Close()
	defer write("new").Close()
	if n, err := stale(f, b); string(b[:n]) == "new" {
		t.Errorf("read %q of another file, %v", b[:n], err)
	}
}
