// Package unpack writes the embedded files of a program into a cache folder, all or none of them. Several processes may
// do this at the same time:
//
//	err := unpack.Folder(dir, files, func(dir string) bool { return hashOf(dir) == want })
package unpack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// stale is the age from which a temporary folder is that of a process that was killed: unpacking takes seconds.
const stale = time.Hour

// Folder makes dir hold files, unless it is right already. Whatever is there and is not right is replaced.
func Folder(dir string, files fs.FS, right func(dir string) bool) error {
	pattern := "." + filepath.Base(dir) + ".*.tmp"
	sweep(filepath.Join(filepath.Dir(dir), pattern))
	if right(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), pattern)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	fresh, old := filepath.Join(temp, "new"), filepath.Join(temp, "old")
	if err := os.CopyFS(fresh, files); err != nil {
		return err
	}
	if right(dir) { // another process was faster
		return nil
	}
	// A folder cannot be renamed over one that has files, so a wrong one is moved away first. If another process moves
	// at the same time, the result of the last rename decides.
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil && !right(dir) {
		return err
	}
	return nil
}

// sweep removes what killed processes have left. Nothing depends on it, so its errors are not reported.
func sweep(pattern string) {
	left, _ := filepath.Glob(pattern) // the only error is a malformed pattern, which matches nothing
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.RemoveAll(path)
		}
	}
}
