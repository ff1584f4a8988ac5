package files

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Unpack makes dir hold the files of content, unless it is right already, all or none of them. Whatever is there and is
// not right is replaced. Nothing is written through a link below the root of dir. Several processes may unpack the same
// at the same time.
func Unpack(dir Path, content fs.FS, right func(dir string) bool) error {
	if err := fill(dir, content, right); err != nil {
		return hint.Errorf("with --cache-dir, name a folder that has space and can be written", "%w", err)
	}
	return nil
}

func fill(dir Path, content fs.FS, right func(dir string) bool) error {
	prefix, parent := "."+dir.Base()+".", dir.Parent()
	parent.Sweep(func(name string) bool {
		return strings.HasPrefix(name, prefix) && strings.HasSuffix(name, unpackSuffix)
	})
	if right(dir.String()) {
		return nil
	}
	if err := parent.MkdirAll(); err != nil {
		return err
	}
	temp, lock, err := parent.Temp(prefix, unpackSuffix)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer temp.RemoveAll()
	fresh, old := temp.Join("new"), temp.Join("old")
	if err := copyTo(fresh, content); err != nil {
		return err
	}
	if fresh.Rename(dir) == nil || right(dir.String()) { // or another process was faster
		return nil
	}
	// A folder cannot be renamed over one that has files, so a wrong one is moved away first. If another process moves
	// at the same time, the result of the last rename decides.
	if err := dir.Rename(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fresh.Rename(dir); err != nil && !right(dir.String()) {
		return err
	}
	return nil
}

// suffix is that of temporary folders.
const unpackSuffix = ".tmp"

// copyTo writes the files of content into a new folder.
func copyTo(dir Path, content fs.FS) error {
	return fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return dir.Join(name).Mkdir()
		}
		data, err := fs.ReadFile(content, name)
		if err != nil {
			return err
		}
		f, err := dir.Join(name).New()
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	})
}
