package files

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

// Open opens a regular file for reading. The caller closes it. Open follows links. The error is a *fs.PathError.
func Open(path string) (*File, error) {
	return openToRead(path, func() (*os.File, error) { return open(path, os.Stat, os.OpenFile) })
}

// OpenIn is Open below a root, which refuses links that leave it.
func OpenIn(root *os.Root, name string) (*File, error) {
	return openToRead(name, func() (*os.File, error) { return open(name, root.Stat, root.OpenFile) })
}

// Open opens a regular file for reading. The caller closes it.
func (p Path) Open() (*File, error) {
	return openToRead(p.String(), func() (*os.File, error) { return p.openFile(unix.O_RDONLY, 0) })
}

// Read returns the content of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return f.readAll(limit)
}

// ReadIn is Read below a root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return f.readAll(limit)
}

// Read returns the content of a regular file of at most limit bytes.
func (p Path) Read(limit int64) ([]byte, error) {
	f, err := p.Open()
	if err != nil {
		return nil, err
	}
	return f.readAll(limit)
}

// Stat is os.Stat for regular files. For other files, the error is ErrNotRegular.
func Stat(path string) (info fs.FileInfo, err error) {
	err = waiting().Retry(func() error {
		if err := fault("stat", path); err != nil {
			return err
		}
		if info, err = os.Stat(path); err == nil {
			err = Check(info)
		}
		return err
	})
	return info, err
}

// Names returns the names in a folder, in any order. complete is false if there are more than limit.
func Names(dir string, limit int) (names []string, complete bool, err error) {
	err = waiting().Retry(func() error {
		if err := fault("readdir", dir); err != nil {
			return err
		}
		d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0) // a pipe would wait for a writer
		if err != nil {
			return err
		}
		defer d.Close()
		if names, err = d.Readdirnames(limit + 1); errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return names[:min(len(names), limit)], len(names) <= limit, nil
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
func Check(info fs.FileInfo) error { return check(info.Mode()) }

func check(mode fs.FileMode) error {
	kind := "a special file"
	switch {
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

func open(
	name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error),
) (*os.File, error) {
	if err := fault("open", name); err != nil {
		return nil, err
	}
	// Opening a device can have side effects, and opening a pipe waits for a writer, so check the name first. The file
	// may be replaced before the open, so do not block in the open, and check the opened file again.
	info, err := stat(name)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			p.Op = "open" // the operation that the caller asked for
		}
		return nil, err
	}
	if err := Check(info); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := openFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		if err = Check(info); err != nil {
			err = &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readAll reads and closes the file.
func (f *File) readAll(limit int64) ([]byte, error) {
	defer f.Close()
	tooLarge := func(size int64) error {
		return &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("%w: %d bytes, more than the limit of %d",
			ErrTooLarge, size, limit)}
	}
	if f.Size() > limit {
		return nil, tooLarge(f.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // check the limit again: the file may grow while it is read
	if int64(len(data)) > limit {
		return nil, tooLarge(int64(len(data)))
	}
	return data, err
}
