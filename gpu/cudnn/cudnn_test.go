package cudnn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpen: the library next to another one comes first; a name without a folder has no such folder.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "libother.so")); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want the loader's refusal of the file in %s", err, dir)
	}
	t.Chdir(dir)
	if _, err := Open("libother.so"); err != nil && strings.Contains(err.Error(), dir) {
		t.Errorf("a file of the working folder is tried: %v", err)
	}
}
