package files

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var (
	// ErrLocked means that another process has locked the file.
	ErrLocked = errors.New("locked by another process")
	// ErrNoLocks means that the file system has no locks.
	ErrNoLocks = errors.New("the file system has no locks")
)

// noLocks reports whether an error of flock says that the file system has no locks, as some that are mounted over a
// network do: nothing is known about other processes then.
func noLocks(err error) bool {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.ENOLCK, unix.EOPNOTSUPP, unix.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (f *File) fd() int { return int(f.open.Load().Fd()) }

// Lock locks the file until it is closed, or its process ends. It does not wait: the error is an ErrLocked, or an
// ErrNoLocks.
func (f *File) Lock() error { return lock(f.fd(), f.name, unix.LOCK_EX) }

// Locked is Lock for a process that only asks: several may at the same time.
func (f *File) Locked() error { return lock(f.fd(), f.name, unix.LOCK_SH) }

func lock(fd int, name string, how int) error {
	err := fault("flock", name)
	if err == nil {
		err = retryInterrupted(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrLocked
	case noLocks(err):
		err = errors.Join(ErrNoLocks, err)
	}
	return &fs.PathError{Op: "lock", Path: name, Err: err}
}

// lockHere locks a file that must still be at a place.
func (f *File) lockHere(at Path) error {
	if err := f.Lock(); err != nil {
		return err
	}
	return f.Here(at)
}

// Here returns an fs.ErrNotExist unless the open file is the one at a place.
func (f *File) Here(at Path) error {
	return here(f, at)
}

func here(f interface{ Stat() (fs.FileInfo, error) }, at Path) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := at.Lstat()
	if err == nil && !os.SameFile(opened, now) {
		err = &fs.PathError{Op: "stat", Path: at.String(), Err: fs.ErrNotExist}
	}
	return err
}

// LockEntry locks a temporary file or folder, which must still be there afterwards, so that Sweep leaves it alone. The
// lock ends with Close, and with the process. With an ErrNoLocks, what it returns has to be closed, too.
func (p Path) LockEntry() (io.Closer, error) {
	var f *os.File
	err := p.within("open", func(fd int, base string) error {
		opened, err := openFd(fd, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err == nil {
			f = os.NewFile(uintptr(opened), p.String())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.lockEntry(f)
}

// lockEntry locks what was opened at p.
func (p Path) lockEntry(f *os.File) (io.Closer, error) {
	err := lock(int(f.Fd()), p.String(), unix.LOCK_EX)
	if errors.Is(err, ErrNoLocks) {
		return f, err // nothing is removed without a lock
	}
	if err == nil {
		err = here(f, p) // another process may have removed it, and even made it again
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
