// Package disk explains errors of a full disk: the file, the size of the write, the free space, and what to do.
//
//	if _, err := f.Write(data); err != nil {
//		return disk.Explain(err, path, int64(len(data)))
//	}
//	...
//	if files.IsFull(err) { ... } // the caller may continue without that file
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// FullError is a write for which the disk had no space.
type FullError struct {
	// Path is the file or folder of the write, Need its least size in bytes.
	Path string
	Need int64
	// Free is the number of free bytes of the disk right after the failure, or -1 if unknown.
	Free int64

	err error
}

// Error names the path unless the wrapped error does: an error of a file system may name only a part of it.
func (e *FullError) Error() string {
	free := "unknown"
	if e.Free >= 0 {
		free = size(e.Free)
	}
	text, what := e.err.Error(), e.Path+" "
	if strings.Contains(text, e.Path) {
		what = ""
	}
	return fmt.Sprintf("%s (%sneeds %s, free: %s)", text, what, size(e.Need), free)
}

func (e *FullError) Unwrap() error { return e.err }

// Hint implements the interface of package hint. Where the write should have fitted, the file system's own overhead did
// not, and all of the write is asked for.
func (e *FullError) Hint() string {
	missing := e.Need
	if e.Free > 0 && e.Free < e.Need {
		missing -= e.Free
	}
	return fmt.Sprintf("free %s or more below %s", size(missing), filepath.Dir(e.Path))
}

// Explain returns a FullError if err, of a write of need bytes to path, means a full disk. It returns any other error,
// and one that has been explained, unchanged.
func Explain(err error, path string, need int64) error {
	if _, explained := errors.AsType[*FullError](err); explained || !files.IsFull(err) {
		return err
	}
	e := &FullError{Path: path, Need: need, Free: -1, err: err}
	if free, err := freeSpace(filepath.Dir(path)); err == nil {
		e.Free = free
	}
	return e
}

// freeSpace returns the free bytes of the disk of a folder.
func freeSpace(folder string) (int64, error) {
	var stat syscall.Statfs_t
	err := syscall.Statfs(folder, &stat)
	return int64(stat.Bavail) * stat.Bsize, err
}

// FreeFor returns the free bytes for a folder that may not exist yet: those of the disk of the nearest one above it.
func FreeFor(folder string) (int64, error) {
	free, err := freeSpace(folder)
	if above := filepath.Dir(folder); errors.Is(err, fs.ErrNotExist) && above != folder {
		return FreeFor(above)
	}
	return free, err
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20)
}
