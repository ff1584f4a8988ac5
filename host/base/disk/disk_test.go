package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestExplain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := Explain(&os.PathError{Op: "write", Path: path, Err: cause}, path, 20<<20)
		full, ok := errors.AsType[*FullError](fmt.Errorf("log: %w", err))
		if !ok || !files.IsFull(err) || full.Need != 20<<20 || full.Free <= 0 {
			t.Fatalf("%v: %+v", cause, err)
		}
		if text := err.Error(); !strings.Contains(text, " (needs 20 MiB, ") || strings.Count(text, path) != 1 {
			t.Errorf("text %q", text)
		}
		if h := hint.Of(err); !strings.HasPrefix(h, "free ") || !strings.Contains(h, filepath.Dir(path)) {
			t.Errorf("hint %q", h)
		}
	}
	once := Explain(syscall.ENOSPC, path, 20<<20)
	if twice := Explain(fmt.Errorf("clip: %w", once), path, 1); strings.Count(twice.Error(), "needs") != 1 {
		t.Errorf("explained twice: %v", twice)
	}
	if err := Explain(syscall.EIO, path, 1); err != syscall.EIO || files.IsFull(err) {
		t.Errorf("another error became %v", err)
	}
	if full, _ := errors.AsType[*FullError](Explain(syscall.ENOSPC, "/nowhere/at all/x", 1)); full.Free != -1 {
		t.Errorf("%d bytes free in a folder that is not there", full.Free)
	}
}

func TestError(t *testing.T) {
	for free, want := range map[int64]string{0: "0 bytes", 48 << 10: "48 KiB", -1: "unknown"} {
		want = "no space left on device (run/x needs 104 KiB, free: " + want + ")"
		if got := (&FullError{Path: "run/x", Need: 104 << 10, Free: free, err: syscall.ENOSPC}).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestHint(t *testing.T) {
	for _, tt := range []struct {
		need, free int64
		want       string
	}{
		{104 << 10, 48 << 10, "free 56 KiB or more below run"},
		{104 << 10, 104 << 10, "free 104 KiB or more below run"}, // where the file system needs more than the file
		{104 << 10, 116 << 10, "free 104 KiB or more below run"},
		{2036, 0, "free 2036 bytes or more below run"},
		{2036, -1, "free 2036 bytes or more below run"},
	} {
		if got := (&FullError{Path: "run/x", Need: tt.need, Free: tt.free}).Hint(); got != tt.want {
			t.Errorf("needs %d, %d are free: %s, want %s", tt.need, tt.free, got, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 10239: "10239 bytes", 10240: "10 KiB", 10241: "11 KiB", 20<<20 + 1: "21 MiB",
	} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
}
