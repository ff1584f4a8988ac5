// Package regular opens files that strangers made: only regular ones, and reads no more of them than a bound.
//
// A name from a downloaded folder may be a pipe, whose opening waits for ever, or lead to a device that never ends:
// whoever reads a manifest must not hang on it or fill the memory.
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
	// ErrNotRegular says that a name is that of a folder, a pipe, a socket or a device.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge says that a file has more bytes than are read.
	ErrTooLarge = errors.New("too large")
)

// Open opens a regular file for reading and returns its size; the caller closes it. Links are followed. The error is a
// *fs.PathError.
func Open(path string) (f *os.File, size int64, err error) { return open(path, os.Stat, os.OpenFile) }

// OpenIn does the same below a root, which refuses links that leave it.
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

// ReadIn does the same below a root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, size, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return read(f, name, size, limit)
}

// Stat is os.Stat of a file that Open may open: the error is an ErrNotRegular for another.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil {
		err = Check(info)
	}
	return info, err
}

// ReadAt fills b with the bytes from an offset on.
func ReadAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil // ReadAt may give io.EOF with the last bytes
	}
	return fmt.Errorf("reading %d bytes at %d: got %d: %w", len(b), at, n, err)
}

// Check says what a name is that is not a regular file's; the error is an ErrNotRegular.
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
	// Opening a device may do something and opening a pipe waits for a writer, so the name is looked at first. It may be
	// another file a moment later, so the open does not wait, and what was opened is looked at again.
	info, err := stat(name)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			p.Op = "open" // what was asked for
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
		return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, size, limit)}
	}
	if size > limit {
		return nil, tooLarge(size)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // the limit again: a file may grow while it is read
	if int64(len(data)) > limit {
		return nil, tooLarge(int64(len(data)))
	}
	return data, err
}
