package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// socketPrefix is the prefix of the folders in which plugins listen while they start. A host that is killed during a
// start leaves its folder, and the next host that starts removes it. A folder is locked while its host lives.
const socketPrefix = "xtts-sock-"

// socketDir is such a folder.
type socketDir struct {
	path string
	lock *os.File
}

// newSocketDir creates a folder and locks it.
func newSocketDir(root string) (*socketDir, error) {
	for {
		path, err := os.MkdirTemp(root, socketPrefix)
		if err != nil {
			return nil, hint.Errorf(tempHint, "%w", err)
		}
		lock, err := lockDir(path)
		if err == nil {
			return &socketDir{path, lock}, nil
		}
		// Another host may remove the folder before it is locked, because it seems to belong to a dead host.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// lockDir locks a folder, which must still exist afterwards. The lock ends with the file descriptor, and with the
// process.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remove removes the folder, then releases the lock.
func (d *socketDir) remove() {
	os.RemoveAll(d.path)
	d.lock.Close()
}

// sweepSocketDirs removes the folders of hosts that were killed. It skips folders that it may not or need not remove.
func sweepSocketDirs(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return // creating a folder there will report the error
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if !strings.HasPrefix(e.Name(), socketPrefix) {
			continue
		}
		if lock, err := lockDir(path); err == nil {
			if holdsNothing(path) {
				os.RemoveAll(path)
			}
			lock.Close()
		}
	}
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
