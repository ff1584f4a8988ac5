// Package unpack writes files into a cache folder, all or none of them. Several processes may do this at the same time:
//
//	err := unpack.Folder(dir, files, func(dir string) bool { return hashOf(dir) == want }) // the program's own files
//	err := unpack.File(path, content)
package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Folder makes dir hold files, unless it is right already. Whatever is there and is not right is replaced.
func Folder(dir string, files fs.FS, right func(dir string) bool) error {
	pattern := "." + filepath.Base(dir) + ".*.tmp"
	Sweep(filepath.Join(filepath.Dir(dir), pattern))
	if right(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	temp, lock, err := makeTemp(filepath.Dir(dir), pattern, os.MkdirTemp)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer os.RemoveAll(temp)
	fresh, old := filepath.Join(temp, "new"), filepath.Join(temp, "old")
	if err := os.CopyFS(fresh, files); err != nil {
		return err
	}
	if os.Rename(fresh, dir) == nil || right(dir) { // or another process was faster
		return nil
	}
	// A folder cannot be renamed over one that has files, so a wrong one is moved away first. If another process moves at the same
	// time, the result of the last rename decides.
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil && !right(dir) {
		return err
	}
	return nil
}

// File writes a file with the parts as its content. It replaces the file, and a reader never sees a partial one. What
// killed processes have left in its folder is removed.
func File(file string, parts ...[]byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	Sweep(filepath.Join(dir, "*.tmp"))
	temp, lock, err := makeTemp(dir, filepath.Base(file)+".*.tmp", createTemp)
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := os.OpenFile(temp, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(temp)
		}
	}()
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
	return os.Rename(temp, file)
}

func createTemp(dir, pattern string) (string, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// makeTemp makes a temporary file or folder and locks it.
func makeTemp(parent, pattern string, create func(parent, pattern string) (string, error)) (path string, lock *os.File, err error) {
	for {
		if path, err = create(parent, pattern); err != nil {
			return "", nil, err
		}
		lock, err = Lock(path)
		if err == nil {
			return path, lock, nil
		}
		// Another process may remove what is not locked yet.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// Lock locks a temporary file or folder, which must still be there afterwards, so that Sweep leaves it alone. The lock ends with the
// file that Lock returns, and with the process.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
