package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// socketPrefix begins the names of the folders that plugins listen in while they start. A host that is killed then leaves
// its folder behind, and the next one that starts removes it: it is locked as long as its host lives.
const socketPrefix = "xtts-sock-"

// socketDir is such a folder.
type socketDir struct {
	path string
	lock *os.File
}

// newSocketDir makes a folder and locks it.
func newSocketDir(root string) (*socketDir, error) {
	for {
		path, err := os.MkdirTemp(root, socketPrefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockDir(path)
		if err == nil {
			return &socketDir{path, lock}, nil
		}
		// Another host may take the folder for a dead one's before it is locked.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// lockDir locks a folder, which must still be there then. The lock ends with the file, and with the process.
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

// remove removes the folder. The lock goes last.
func (d *socketDir) remove() {
	os.RemoveAll(d.path)
	d.lock.Close()
}

// sweepSocketDirs removes the folders of hosts that were killed. What it may not or need not remove it leaves.
func sweepSocketDirs(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return // whoever makes a folder there will say so
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

// holdsNothing reports whether only folders, sockets and empty files are in a folder: what a plugin that starts makes
// there, and nobody misses. go-plugin makes an empty file first, to find a name for its socket.
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
