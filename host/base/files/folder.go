package files

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mkdir makes a folder. One that is there is an fs.ErrExist.
func (p Path) Mkdir() error {
	return p.mkdir(0o777)
}

func (p Path) mkdir(mode uint32) error {
	return p.within("mkdir", func(fd int, base string) error { return unix.Mkdirat(fd, base, mode) })
}

// Temp makes a folder with a name of its own in p, for this user alone, and locks it until the closer is closed: Sweep
// removes it once this process has ended.
func (p Path) Temp(prefix, suffix string) (folder Path, lock io.Closer, err error) {
	for {
		folder = p.Join(prefix + strconv.FormatUint(rand.Uint64(), 36) + suffix)
		if err = folder.mkdir(0o700); errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return folder, nil, err
		}
		lock, err = folder.LockEntry()
		if err == nil || errors.Is(err, ErrNoLocks) { // Sweep removes nothing without a lock
			return folder, lock, nil
		}
		// Another process may remove what is not locked yet.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrLocked) {
			return folder, nil, errors.Join(err, folder.RemoveAll())
		}
	}
}

// MkdirAll makes a folder, those above it, and the root. Those that are there are fine; a link is not.
func (p Path) MkdirAll() error {
	if err := os.MkdirAll(p.root, 0o777); err != nil || p.name == "." {
		return err
	}
	at := In(p.root)
	for part := range strings.SplitSeq(p.name, "/") {
		at = at.Join(part)
		err := at.Mkdir()
		if errors.Is(err, fs.ErrExist) {
			err = at.folderHere()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folderHere returns an error unless p is a folder.
func (p Path) folderHere() error {
	info, err := p.Lstat()
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: p.String(), Err: unix.ENOTDIR}
	}
	return err
}

// Lstat describes what is there: a link is an ErrLink.
func (p Path) Lstat() (info fs.FileInfo, err error) {
	err = p.within("stat", func(fd int, base string) error {
		opened, err := openFd(fd, base, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(opened), p.String())
		defer f.Close()
		if info, err = f.Stat(); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = linked("stat", p.String())
		}
		return err
	})
	return info, err
}

// Rename moves a file or folder to another place of the same root, and replaces a file there.
func (p Path) Rename(to Path) error {
	return p.within("rename", func(from int, base string) error {
		fd, name, err := to.folder("rename")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Renameat(from, base, fd, name)
	})
}

// Exchange gives two files or folders of the same root each other's place, in one step. On a file system that cannot do
// that, it returns an error and changes nothing.
func (p Path) Exchange(with Path) error {
	return p.within("exchange", func(from int, base string) error {
		fd, name, err := with.folder("exchange")
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Renameat2(from, base, fd, name, unix.RENAME_EXCHANGE)
	})
}

// ReadDir returns what is in a folder, sorted by name. It waits for a disk that fails.
func (p Path) ReadDir() (entries []fs.DirEntry, err error) {
	err = waiting().Retry(func() error {
		f, err := p.openDir()
		if err != nil {
			return err
		}
		defer f.Close()
		entries, err = f.ReadDir(-1)
		return err
	})
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// openDir opens a folder.
func (p Path) openDir() (f *os.File, err error) {
	err = p.within("open", func(fd int, base string) error {
		opened, err := openFd(fd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil && isLink(fd, base) {
			return linked("open", p.String())
		}
		if err == nil {
			f = os.NewFile(uintptr(opened), p.String())
		}
		return err
	})
	return f, err
}

// SyncDir makes the names in a folder durable, as Sync does for a file's content.
func (p Path) SyncDir() error {
	f, err := p.openDir()
	if err != nil {
		return err
	}
	if err := fault("fsync", p.String()); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove removes a file or an empty folder, and a link itself.
func (p Path) Remove() error {
	return p.within("remove", func(fd int, base string) error {
		err := unix.Unlinkat(fd, base, 0)
		if err == unix.EISDIR || err == unix.EPERM {
			err = unix.Unlinkat(fd, base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// RemoveAll removes a file, or a folder and all in it; one that is not there is fine. It removes links and follows
// none. A folder without rights for its owner, this user, gets them first.
func (p Path) RemoveAll() error {
	err := p.Remove()
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		p.letOwnerIn()
		entries, rerr := p.ReadDir()
		if rerr != nil {
			return rerr
		}
		for _, e := range entries {
			if err := p.Join(e.Name()).RemoveAll(); err != nil {
				return err
			}
		}
		err = p.Remove()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// letOwnerIn gives the owner of a folder all rights on it, if it lacks one. If that fails, the next step says why.
func (p Path) letOwnerIn() {
	_ = p.within("chmod", func(fd int, base string) error {
		opened, err := openFd(fd, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(opened)
		var is unix.Stat_t
		if err := unix.Fstat(opened, &is); err != nil || is.Mode&0o700 == 0o700 {
			return err
		}
		return unix.Chmod("/proc/self/fd/"+strconv.Itoa(opened), 0o700) // fchmod(2) takes no O_PATH
	})
}
