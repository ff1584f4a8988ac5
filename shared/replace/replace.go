// Package replace writes files that appear when they are complete: a reader sees the old content or the new one, and
// after an error or a kill the old one stays.
//
//	f, err := replace.Create(path)
//	...
//	defer f.Discard() // without effect after Commit
//	... // write to f, and Sync it if the content must survive a loss of power
//	err = f.Commit()
package replace

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ending is that of files that are not complete. No other program has it, so they can be removed.
const ending = ".xtts-partial"

// File is a file that has another name until Commit. Its errors name the file that it is to become.
type File struct {
	temporary *os.File
	path      string
	over      bool
}

// Create opens a file that is to replace path, or to become it, in the same folder. It removes what killed processes have
// left there.
func Create(path string) (*File, error) {
	dir := filepath.Dir(path)
	Sweep(filepath.Join(dir, ".*"+ending))
	for {
		name := filepath.Join(dir, "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36)+ending)
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, named(err, path)
		}
		if err := lock(f); errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
			f.Close() // another process has taken it for one that was left, and removes it
			continue
		}
		return &File{temporary: f, path: path}, nil // on a file system without locks, Sweep does not remove it either
	}
}

// named makes an error name the file that the caller knows, in place of the temporary one.
func named(err error, path string) error {
	var of *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &of):
		return &fs.PathError{Op: of.Op, Path: path, Err: of.Err}
	case errors.As(err, &link):
		return &fs.PathError{Op: link.Op, Path: path, Err: link.Err}
	}
	return err
}

// Write appends p, as io.Writer.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.temporary.Write(p)
	return n, named(err, f.path)
}

// WriteAt writes p at an offset, as io.WriterAt.
func (f *File) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.temporary.WriteAt(p, offset)
	return n, named(err, f.path)
}

// Sync returns when the content is on the disk.
func (f *File) Sync() error { return named(f.temporary.Sync(), f.path) }

// Commit closes the file and gives it its name.
func (f *File) Commit() error {
	err := os.Rename(f.temporary.Name(), f.path) // before Close, which ends the lock
	if err != nil {
		return errors.Join(named(err, f.path), f.Discard())
	}
	f.over = true
	return named(f.temporary.Close(), f.path)
}

// Discard closes and removes the file, unless Commit or Discard has been called.
func (f *File) Discard() error {
	if f.over {
		return nil
	}
	f.over = true
	return errors.Join(os.Remove(f.temporary.Name()), f.temporary.Close())
}

// Write writes a file with the parts as its content, and makes its folder.
func Write(path string, parts ...[]byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return errors.Join(err, f.Discard())
		}
	}
	return f.Commit()
}

// Lock locks a temporary file or folder, which must still be there afterwards, so that Sweep leaves it alone. The lock ends with the
// file that Lock returns, and with the process.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lock fails if the file is locked or gone.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Lstat(f.Name())
	}
	return err
}

// Sweep removes the temporary files and folders of a pattern that killed processes have left: those that no process has locked.
// Nothing depends on it, so its errors are not reported.
func Sweep(pattern string) {
	left, _ := filepath.Glob(pattern) // the only error is a malformed pattern, which matches nothing
	for _, path := range left {
		if lock, err := Lock(path); err == nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
}
