package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is an open regular file. One that is only read may be used by several goroutines. Its errors name the file.
type File struct {
	open atomic.Pointer[os.File]
	name string
	size int64
	was  identity
	// again opens the file once more. It is nil unless the file is only read.
	again func() (*os.File, error)

	mu    sync.Mutex
	stale []*os.File // other goroutines may still read from them, so they are closed with the file
}

// identity tells a file from another one of its name. It has no device: a network file system that is mounted again has
// another.
type identity struct {
	inode       uint64
	size, mtime int64
}

func identityOf(f *os.File) (identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return identity{stat.Ino, stat.Size, stat.Mtim.Nano()}, nil
}

func newFile(f *os.File, name string) (*File, error) {
	was, err := identityOf(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file := &File{name: name, size: was.size, was: was}
	file.open.Store(f)
	return file, nil
}

// From is a file that the caller has opened. Only tests do that, for what no path leads to here, as /dev/full.
func From(f *os.File) *File {
	file := &File{name: f.Name()}
	file.open.Store(f)
	return file
}

// openToRead opens a file to read. It waits for a disk that fails.
func openToRead(name string, open func() (*os.File, error)) (file *File, err error) {
	err = waiting().Retry(func() error {
		f, err := open()
		if err == nil {
			file, err = newFile(f, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	file.again = open
	return file, nil
}

// Name returns the path that the file was opened with.
func (f *File) Name() string { return f.name }

// Size returns the size in bytes when the file was opened.
func (f *File) Size() int64 { return f.size }

// Stat describes the open file.
func (f *File) Stat() (fs.FileInfo, error) { return f.open.Load().Stat() }

// Links returns how many names the file has: 0 after it was removed.
func (f *File) Links() (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.open.Load().Fd()), &stat); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: f.name, Err: err}
	}
	return uint64(stat.Nlink), nil
}

// Read implements io.Reader.
func (f *File) Read(b []byte) (int, error) {
	return f.read(func(open *os.File) (int, error) { return open.Read(b) })
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	return f.read(func(open *os.File) (int, error) { return open.ReadAt(b, at) })
}

// read waits for a disk that fails.
func (f *File) read(read func(*os.File) (int, error)) (n int, err error) {
	err = waiting().Retry(func() error {
		if err := fault("read", f.name); err != nil {
			return err
		}
		n, err = read(f.open.Load())
		if errors.Is(err, unix.ESTALE) {
			f.reopen()
		}
		return err
	})
	return n, err
}

// reopen opens the file again for the next read. That helps when the server of a network file system has forgotten it.
// Another file of that name is not the one that was opened.
func (f *File) reopen() {
	if f.again == nil {
		return
	}
	stale := f.open.Load()
	fresh, err := f.again()
	if err != nil {
		return
	}
	at, err := stale.Seek(0, io.SeekCurrent)
	if is, serr := identityOf(fresh); err != nil || serr != nil || is != f.was {
		fresh.Close()
		return
	}
	if _, err := fresh.Seek(at, io.SeekStart); err != nil || !f.open.CompareAndSwap(stale, fresh) {
		fresh.Close()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = append(f.stale, stale)
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	return f.open.Load().Seek(offset, whence)
}

// Write implements io.Writer. It does not wait for the disk: a part may have been written.
func (f *File) Write(b []byte) (int, error) {
	if err := fault("write", f.name); err != nil {
		return 0, err
	}
	n, err := f.open.Load().Write(b)
	return n, named(err, f.name)
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, at int64) (int, error) {
	if err := fault("write", f.name); err != nil {
		return 0, err
	}
	n, err := f.open.Load().WriteAt(b, at)
	return n, named(err, f.name)
}

// Truncate changes the size.
func (f *File) Truncate(size int64) error {
	if err := fault("truncate", f.name); err != nil {
		return err
	}
	return named(f.open.Load().Truncate(size), f.name)
}

// Chmod changes the permissions.
func (f *File) Chmod(mode fs.FileMode) error { return f.open.Load().Chmod(mode) }

// Sync returns when the content is on the disk. After an error nobody knows what the disk has, and a second Sync may
// succeed without writing anything: the content has to be written again, to another file.
func (f *File) Sync() error {
	if err := fault("fsync", f.name); err != nil {
		return err
	}
	return named(f.open.Load().Sync(), f.name)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, stale := range f.stale {
		stale.Close() // the server does not know it
	}
	f.stale = nil
	return named(f.open.Load().Close(), f.name)
}
