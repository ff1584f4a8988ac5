// Package regular opens files from untrusted sources: it opens only regular files and limits how much it reads.
//
// A name in a downloaded folder may be a pipe, which blocks on open, or lead to a device without an end. Reading a
// manifest must not hang or exhaust memory.
//
//	data, err := regular.Read(path, 1<<20)
//	if errors.Is(err, regular.ErrTooLarge) { ... }
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var (
	// ErrNotRegular means that the name is a folder, a pipe, a socket or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge means that the file is larger than the limit.
	ErrTooLarge = errors.New("too large")
)

// Open opens a regular file for reading and returns its size in bytes. The caller closes it. Open follows links. The
// error is a *fs.PathError.
func Open(path string) (f *os.File, size int64, err error) { return open(path, os.Stat, os.OpenFile) }

// OpenIn is Open below a root, which refuses links that leave it.
func OpenIn(root *os.Root, name string) (f *os.File, size int64, err error) {
	return open(name, root.Stat, root.OpenFile)
}

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	return read(f, path, size, limit)
}

// ReadIn is Read below a root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, size, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return read(f, name, size, limit)
}

// Stat is os.Stat for regular files. For other files, the error is ErrNotRegular.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = Check(info)
	}
	return info, err
}

// ReadAt fills b with the bytes from offset at.
func ReadAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil // ReadAt may return io.EOF with the last bytes
	}
	return fmt.Errorf("reading %d bytes at %d: got %d: %w", len(b), at, n, err)
}

// Check returns an ErrNotRegular that names the kind of file, or nil for a regular file.
func Check(info fs.FileInfo) error {
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s, %w", kind, ErrNotRegular)
}

func open(name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, int64, error) {
	// Opening a device can have side effects, and opening a pipe waits for a writer, so check the name first. The file
	// may be replaced before the open, so do not block in the open, and check the opened file again.
	info, err := stat(name)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			p.Op = "open" // the operation that the caller asked for
		}
		return nil, 0, err
	}
	if err := Check(info); err != nil {
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := openFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		if err = Check(info); err != nil {
			err = &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func read(f *os.File, name string, size, limit int64) ([]byte, error) {
	defer f.Close()
	tooLarge := func(size int64) error {
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: %d bytes, more than the limit of %d", ErrTooLarge, size, limit)}
	}
	if size > limit {
		return nil, tooLarge(size)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // check the limit again: the file may grow while it is read
	if int64(len(data)) > limit {
		return nil, tooLarge(int64(len(data)))
	}
	return data, err
}
