package dataset

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCacheLeftovers: what a process left that was killed while it wrote an index goes with the next write.
func TestCacheLeftovers(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "recordings-0123456789abcdef.bin.42.tmp")
	if err := os.WriteFile(left, []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "recordings-fedcba9876543210.bin")
	if err := writeFile(file, []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(file) {
		t.Errorf("%v are there, %v", entries, err)
	}
}
