package supervise

import (
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// socketPrefix is the prefix of the folders in which plugins listen while they start. A host that is killed during a
// start leaves its folder, and the next host that starts removes it. A folder is locked while its host lives.
const socketPrefix = "xtts-sock-"

// socketDir is such a folder.
type socketDir struct {
	path   string
	folder files.Path
	lock   io.Closer
}

// newSocketDir creates a folder and locks it.
func newSocketDir(root string) (*socketDir, error) {
	folder, lock, err := files.In(root).Temp(socketPrefix, "")
	if err != nil {
		return nil, hint.Errorf(tempHint, "%w", err)
	}
	return &socketDir{folder.String(), folder, lock}, nil
}

// remove removes the folder, then releases the lock.
func (d *socketDir) remove() {
	_ = d.folder.RemoveAll() // what is left, the next host removes
	d.lock.Close()
}

// sweepSocketDirs removes the folders of hosts that were killed. It skips folders that it may not or need not remove.
func sweepSocketDirs(root string) {
	files.In(root).Sweep(func(name string) bool {
		return strings.HasPrefix(name, socketPrefix) && holdsNothing(filepath.Join(root, name))
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
