package unpack

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestFile: a file is replaced, and what a killed process left that wrote another one goes.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "made", "yet")
	file := filepath.Join(dir, "fedcba9876543210.bin")
	for _, content := range []string{"old and longer", "new"} {
		left := filepath.Join(dir, "0123456789abcdef.bin.42.tmp")
		if err := os.WriteFile(left, []byte("half"), 0o666); err != nil && content == "new" {
			t.Fatal(err)
		}
		if err := File(file, []byte(content[:2]), []byte(content[2:])); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("the file has %q, %v", got, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v are there, %v", entries, err)
		}
	}
}

// TestFilesAtTheSameTime: writers that remove what others have left do not remove what others write.
func TestFilesAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("whole"), 1<<12)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := File(file, content); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}
