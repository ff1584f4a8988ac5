package files

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// New makes a file that is not there yet, to write it.
func (p Path) New() (*File, error) { return p.create(0o666) }

// Private is New for a file that this user alone can read, from the beginning.
func (p Path) Private() (*File, error) { return p.create(0o600) }

func (p Path) create(mode uint32) (*File, error) {
	f, err := p.openFile(unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return newFile(f, p.String())
}

// Append opens a file to read it and to write to its end, and makes it if it is not there. A file that has other names,
// as in a copy that `cp -al` made, becomes one of its own first: the others do not change with it.
func (p Path) Append() (*File, error) {
	f, err := p.openAppend()
	if err != nil {
		return nil, err
	}
	return f.cut(p)
}

func (p Path) openAppend() (*File, error) {
	f, err := p.openFile(unix.O_RDWR|unix.O_CREAT|unix.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return newFile(f, p.String())
}

// Fresh makes a file, in place of one that is there, to write it.
func (p Path) Fresh() (*File, error) {
	d, err := p.Create()
	if err != nil {
		return nil, err
	}
	return d.Keep()
}

// cut gives a file that has other names an inode of its own. It returns f itself if it has no other name.
func (f *File) cut(p Path) (*File, error) {
	links, err := f.Links()
	if err != nil || links < 2 {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
		return f, err
	}
	own, err := f.Rewrite(p, f.size, nil)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return own, f.Close()
}

// Rewrite returns a durable copy of the file, which has taken its place: its first bytes, and what is to follow them.
// The caller closes f.
func (f *File) Rewrite(p Path, bytes int64, rest []byte) (*File, error) {
	d, err := p.Create()
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(d, io.NewSectionReader(f, 0, bytes))
	if err == nil {
		_, err = d.Write(rest)
	}
	if err == nil {
		err = d.Sync()
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(d.fd()), unix.F_SETFL, unix.O_APPEND)
	}
	if err != nil {
		return nil, errors.Join(err, d.Discard())
	}
	own, err := d.Keep()
	if err != nil {
		return nil, err
	}
	if _, err := own.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	if err := p.Parent().SyncDir(); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return own, nil
}

// Touch sets the times of what is there to now.
func (p Path) Touch() error {
	return p.within("utimensat", func(fd int, base string) error {
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		return unix.UtimesNanoAt(fd, base, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// Replace replaces a file durably, completely or not at all. It waits for a disk that fails.
func (p Path) Replace(data []byte) error {
	return Wait(func() error { return p.ReplaceNow(data) })
}

// ReplaceNow is Replace, and does not wait.
func (p Path) ReplaceNow(data []byte) error {
	d, err := p.Create()
	if err != nil {
		return err
	}
	if _, err := d.Write(data); err != nil {
		return errors.Join(err, d.Discard())
	}
	return d.Commit()
}
