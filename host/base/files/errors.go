package files

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// IsFull reports whether an error means that the disk, or the user's share of it, is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// passing are the faults of a disk, or of the network that leads to it, that may pass.
var passing = []unix.Errno{
	unix.EIO, unix.ESTALE, unix.ETIMEDOUT, unix.EREMOTEIO, unix.ENOTCONN, unix.ESHUTDOWN, unix.EHOSTDOWN,
	unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.ECONNRESET, unix.ECONNABORTED, unix.ECONNREFUSED,
	unix.ENOLINK, unix.ENODATA,
}

// MayPass reports whether an error is a fault of the disk, or of the network that leads to it, that may pass: no space,
// or an I/O error.
func MayPass(err error) bool {
	return IsFull(err) || slices.ContainsFunc(passing, func(errno unix.Errno) bool { return errors.Is(err, errno) })
}

// Failed reports whether an error is one of a file that could not be read or written because of its disk, or of the
// network that leads to it. A full disk is none: that is for its owner to change.
func Failed(err error) bool {
	of, ok := errors.AsType[*fs.PathError](err)
	return ok && MayPass(of.Err) && !IsFull(of.Err)
}

// byName are about a name, and what it leads to.
var byName = []unix.Errno{
	unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL,
	unix.EOVERFLOW, unix.EFBIG, unix.ENXIO, unix.ENODEV,
}

// OfMachine reports whether an error is a fault of the machine: of its disk, or of what it gives a process, such as
// memory or open files. It says nothing about the file that was read.
func OfMachine(err error) bool {
	errno, ok := errors.AsType[unix.Errno](err)
	return ok && !slices.Contains(byName, errno)
}
