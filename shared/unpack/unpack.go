// Package unpack writes the program's own files into a cache folder, all or none of them. Several processes may do this at
// the same time:
//
//	err := unpack.Folder(dir, files, func(dir string) bool { return hashOf(dir) == want })
package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/replace"
)

// Folder makes dir hold files, unless it is right already. Whatever is there and is not right is replaced.
func Folder(dir string, files fs.FS, right func(dir string) bool) error {
	if err := fill(dir, files, right); err != nil {
		return hint.Errorf("with --cache-dir, name a folder that has space and can be written", "%w", err)
	}
	return nil
}

func fill(dir string, files fs.FS, right func(dir string) bool) error {
	pattern := "." + filepath.Base(dir) + ".*.tmp"
	replace.Sweep(filepath.Join(filepath.Dir(dir), pattern))
	if right(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	temp, lock, err := makeTemp(filepath.Dir(dir), pattern)
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

// makeTemp makes a temporary folder and locks it.
func makeTemp(parent, pattern string) (path string, lock *os.File, err error) {
	for {
		if path, err = os.MkdirTemp(parent, pattern); err != nil {
			return "", nil, err
		}
		lock, err = replace.Lock(path)
		if err == nil {
			return path, lock, nil
		}
		// Another process may remove what is not locked yet.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}
