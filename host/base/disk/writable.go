package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Access modes of access(2).
const (
	mayWrite  = 2
	maySearch = 1
)

// ErrThere is the error of CheckNew for a folder that is there.
var ErrThere = errors.New("it exists already")

// CheckNew is CheckFolder for a folder that must not be there, nor anything else in its place.
func CheckNew(dir string) error {
	switch _, err := files.At(dir).Lstat(); {
	case err == nil:
		return ErrThere
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return CheckFolder(dir)
}

// CheckFolder returns an error if this process cannot make the folder or write files into it. It changes nothing.
func CheckFolder(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for {
		info, err := os.Stat(dir)
		switch link, linked := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist) && linked != nil: // it would be made
			dir = filepath.Dir(dir)
			continue
		case errors.Is(err, fs.ErrNotExist) && link.Mode()&fs.ModeSymlink == 0: // another process has made it since
			continue
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a link to nothing", dir)
		case errors.Is(err, syscall.ENOTDIR):
			dir = filepath.Dir(dir) // the file in its path
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is a file, not a folder", dir)
		}
		switch err := syscall.Access(dir, mayWrite|maySearch); {
		case errors.Is(err, fs.ErrNotExist): // another process has removed it since
			continue
		case err != nil:
			return &fs.PathError{Op: "write to folder", Path: dir, Err: err}
		}
		return nil
	}
}

// CheckFile returns an error if this process cannot create or overwrite the file. It changes nothing.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); err != nil {
			return err
		}
		return CheckFolder(dir)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a file", path)
	}
	if err := syscall.Access(path, mayWrite); err != nil {
		return &fs.PathError{Op: "write to file", Path: path, Err: err}
	}
	return nil
}
