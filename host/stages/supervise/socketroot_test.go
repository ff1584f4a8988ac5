package supervise

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSocketRoot: in the longest folder that is taken for sockets, the path of a socket has at most 107 bytes.
func TestSocketRoot(t *testing.T) {
	longest := ""
	for n := range 107 {
		if tmp := "/" + strings.Repeat("t", n); socketRoot(tmp) == tmp {
			longest = tmp
		}
	}
	for range 20 {
		dir, err := newSocketDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(longest, filepath.Base(dir.path), "plugin-dir1234567890", "plugin1234567890")
		dir.remove()
		if len(path) > 107 {
			t.Errorf("%s has %d bytes", path, len(path))
		}
	}
}
