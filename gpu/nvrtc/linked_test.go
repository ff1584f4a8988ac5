package nvrtc

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinkedKernels: no kernel is taken or written through a link in the cache folder.
func TestLinkedKernels(t *testing.T) {
	real := t.TempDir()
	folder := filepath.Join(t.TempDir(), "kernels")
	if err := os.Symlink(real, folder); err != nil {
		t.Fatal(err)
	}
	name := key("1", nil, "source")
	through := cache{folder: folder}
	if through.add(name, []byte("image")); through.err == nil {
		t.Error("a kernel was written through a link")
	}
	own := cache{folder: real}
	own.add(name, []byte("image"))
	if own.err != nil || own.load(name) == nil || through.load(name) != nil {
		t.Errorf("error %v", own.err)
	}
}
