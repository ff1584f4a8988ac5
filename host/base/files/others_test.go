package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOwnerOfSticky: the sticky bit protects what is in a folder. On a file it means nothing.
func TestOwnerOfSticky(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "", file: "everyone"} {
		if err := os.Chmod(path, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		if got := OtherOwner(path, os.Geteuid()); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
