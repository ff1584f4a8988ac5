// Package socketdir makes folders for Unix sockets: for this user alone, in the folder for temporary files, and locked
// while their process lives.
//
//	dir, err := socketdir.New(longest)
//	...
//	defer dir.Remove() // as soon as both sides are connected: then nothing remains if either is killed
//
// A process that is killed before that leaves its folder, and Sweep of the next one removes it.
package socketdir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Prefix is the prefix of the folders' names.
const Prefix = "xtts-sock-"

// Dir is such a folder.
type Dir struct {
	Path   string
	folder files.Path
	lock   io.Closer
}

// New creates a folder and locks it. longest is the length of the longest path of a socket in it, with the separator
// before it.
func New(longest int) (*Dir, error) {
	folder, lock, err := files.In(root(TempDir(), longest)).Temp(Prefix, "")
	if err != nil {
		return nil, hint.Errorf("set TMPDIR to a folder that can be written", "%w", err)
	}
	return &Dir{folder.String(), folder, lock}, nil
}

// Remove removes the folder, then releases the lock.
func (d *Dir) Remove() {
	_ = d.folder.RemoveAll() // what is left, the next process removes
	d.lock.Close()
}

// TempDir is the absolute path of the folder for temporary files.
func TempDir() string {
	if dir, err := filepath.Abs(os.TempDir()); err == nil {
		return dir
	}
	return os.TempDir()
}

// root returns the folder for folders whose sockets have paths of that length. The path of a socket has at most 107
// bytes (unix(7)).
func root(tmp string, longest int) string {
	if len(tmp)+len("/"+Prefix+"1234567890123")+longest > 107 {
		return "/tmp"
	}
	return tmp
}

// Sweep removes the folders of processes that were killed. It skips folders that it may not or need not remove.
func Sweep(longest int) { sweep(root(TempDir(), longest)) }

func sweep(root string) {
	files.In(root).Sweep(func(name string) bool {
		return strings.HasPrefix(name, Prefix) && holdsNothing(filepath.Join(root, name))
	})
}

// holdsNothing reports whether a folder contains only folders, sockets and empty files, which a starting plugin creates
// and no one needs. go-plugin creates an empty file first to find a name for its socket.
func holdsNothing(path string) bool {
	return filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type() == fs.ModeSocket {
			return err
		}
		info, err := d.Info()
		if err == nil && (!info.Mode().IsRegular() || info.Size() > 0) {
			err = fs.ErrExist
		}
		return err
	}) == nil
}
