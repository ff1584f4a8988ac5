// Package nccltest provides tests with an NCCL that needs no GPU (fake/nccl.c), and with CUDA graphs.
package nccltest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nccl"
)

//go:embed fake/nccl.c
var source []byte

// Build compiles the fake, and returns the file of the library. The flags are those of the C compiler.
func Build(t testing.TB, flags ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	code, library := filepath.Join(folder, "nccl.c"), filepath.Join(folder, nccl.Name)
	if err := os.WriteFile(code, source, 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, code}, flags...)
	if out, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return library
}

// Open loads the fake.
func Open(t testing.TB) *nccl.Library {
	t.Helper()
	l, err := nccl.Open(Build(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Join returns the communicators of so many ranks of this process.
func Join(t testing.TB, l *nccl.Library, size int) []*nccl.Comm {
	t.Helper()
	id, err := l.NewID()
	if err != nil {
		t.Fatal(err)
	}
	all, errs := make([]*nccl.Comm, size), make(chan error)
	for rank := range size {
		go func() {
			var err error
			all[rank], err = l.Join(id, rank, size)
			errs <- err
		}()
	}
	for range size {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return all
}
