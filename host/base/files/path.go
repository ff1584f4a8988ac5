package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Path is a place below a folder. The folder may be reached through links. Below it, no link is followed.
type Path struct {
	root string // the folder, as it was named
	name string // below it, with slashes; "." is the folder itself
}

// In is a folder that the user named, or what the parts name below it.
func In(folder string, parts ...string) Path { return Path{folder, "."}.Join(parts...) }

// At is a place in the folder that a path names before its last part.
func At(path string) Path {
	path = filepath.Clean(path)
	return In(filepath.Dir(path), filepath.Base(path))
}

// Join is a place below p. The parts must not leave it.
func (p Path) Join(parts ...string) Path {
	return Path{p.root, filepath.Join(append([]string{p.name}, parts...)...)}
}

// Base is the last part of p.
func (p Path) Base() string { return filepath.Base(p.String()) }

// Parent is the folder that p is in. It is not outside of the root.
func (p Path) Parent() Path { return Path{p.root, filepath.Dir(p.name)} }

// String returns the path as a person would name it.
func (p Path) String() string { return filepath.Join(p.root, p.name) }

// ErrLink says that a place is a link, or below one, where none is followed.
var ErrLink = errors.New("a symbolic link, which is not followed here")

// LinkError is an ErrLink. Its hint puts a copy of what the link leads to in its place. It removes a link that leads
// nowhere.
type LinkError struct{ fs.PathError }

// Hint implements the interface of package hint.
func (e *LinkError) Hint() string {
	link := hint.Word(e.Path)
	target, err := os.Stat(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP):
		return "the link leads nowhere; remove it: rm " + link
	case err == nil && holds(target, filepath.Dir(e.Path)):
		return "the link leads to a folder that it is in; remove it: rm " + link
	}
	return fmt.Sprintf("put a copy of what the link leads to in its place: cp -rL %s %s && rm %[1]s && mv %[2]s %[1]s",
		link, hint.Word(copyOf(e.Path)))
}

// copyOf returns the name of a copy beside a file. A name has at most 255 bytes.
func copyOf(path string) string {
	const ending = ".copy"
	dir, base := filepath.Split(path)
	if most := 255 - len(ending); len(base) > most {
		base = strings.ToValidUTF8(base[:most], "")
	}
	return dir + base + ending
}

// holds reports whether a folder is another one or above it.
func holds(folder fs.FileInfo, inner string) bool {
	inner, err := filepath.EvalSymlinks(inner)
	if err == nil {
		inner, err = filepath.Abs(inner)
	}
	for last := ""; err == nil && inner != last; last, inner = inner, filepath.Dir(inner) {
		if info, err := os.Stat(inner); err == nil && os.SameFile(info, folder) {
			return true
		}
	}
	return false
}

func linked(op, path string) error { return &LinkError{fs.PathError{Op: op, Path: path, Err: ErrLink}} }

// folder opens the folder that p is in, and returns p's name there. The caller closes it.
func (p Path) folder(op string) (fd int, base string, err error) {
	if !filepath.IsLocal(p.name) {
		return -1, "", &fs.PathError{Op: op, Path: p.String(), Err: errors.New("outside of its folder")}
	}
	if fd, err = openFd(unix.AT_FDCWD, p.root, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return -1, "", &fs.PathError{Op: op, Path: p.root, Err: err}
	}
	parts := strings.Split(p.name, "/")
	for i, part := range parts[:len(parts)-1] {
		inner, err := openFd(fd, part, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		above := fd
		if err != nil {
			at := filepath.Join(p.root, filepath.Join(parts[:i+1]...))
			if isLink(above, part) {
				err = linked(op, at)
			} else {
				err = &fs.PathError{Op: op, Path: at, Err: err}
			}
		}
		unix.Close(above)
		if err != nil {
			return -1, "", err
		}
		fd = inner
	}
	return fd, parts[len(parts)-1], nil
}

// within calls do with the folder that p is in and p's name there. The error of do becomes one that names p.
func (p Path) within(op string, do func(fd int, base string) error) error {
	if err := fault(op, p.String()); err != nil {
		return err
	}
	fd, base, err := p.folder(op)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = retryInterrupted(func() error { return do(fd, base) })
	if _, plain := err.(unix.Errno); plain {
		return &fs.PathError{Op: op, Path: p.String(), Err: err}
	}
	return err
}

// openFile opens p, which must be a regular file or, with O_CREAT, not be there.
func (p Path) openFile(flags int, mode uint32) (*os.File, error) {
	var file *os.File
	err := p.within("open", func(fd int, base string) error {
		// Opening a device can have side effects, so check the name first. It may be replaced before the open, so the
		// open does not block, and the opened file is checked again.
		var stat unix.Stat_t
		err := unix.Fstatat(fd, base, &stat, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == nil && flags&unix.O_EXCL == 0:
			if err := p.regular(stat.Mode); err != nil {
				return err
			}
		case err != nil && (err != unix.ENOENT || flags&unix.O_CREAT == 0):
			return err
		}
		opened, err := openFd(fd, base, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(opened), p.String())
		if err = unix.Fstat(opened, &stat); err == nil {
			err = p.regular(stat.Mode)
		}
		if err != nil {
			file.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// regular returns an error for a mode that is not that of a regular file.
func (p Path) regular(mode uint32) error {
	if mode&unix.S_IFMT == unix.S_IFLNK {
		return linked("open", p.String())
	}
	if err := check(fileMode(mode)); err != nil {
		return &fs.PathError{Op: "open", Path: p.String(), Err: err}
	}
	return nil
}

// isLink reports whether a name in a folder is a link.
func isLink(fd int, name string) bool {
	var stat unix.Stat_t
	return unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK
}

// fileMode returns the type of a file as package fs has it.
func fileMode(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFBLK, unix.S_IFCHR:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// openFd is openat, which no child inherits.
func openFd(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = retryInterrupted(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// retryInterrupted calls do until no signal interrupts it.
func retryInterrupted(do func() error) error {
	for {
		if err := do(); err != unix.EINTR {
			return err
		}
	}
}
