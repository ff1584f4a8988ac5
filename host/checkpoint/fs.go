package checkpoint

import (
	"errors"
	"io"
	"os"

	"github.com/xtts-host/xtts-host/shared/regular"
)

// fileSystem is every operation on files that saving and loading need, so that tests can stop or fail a save
// at each of them. A failed Write may have written a part.
type fileSystem interface {
	// MkdirAll makes a folder and its parents; one that is there is fine.
	MkdirAll(path string) error
	// Create makes a new file.
	Create(path string) (writeFile, error)
	// Open opens a regular file, and no other.
	Open(path string) (readFile, error)
	// ReadDir returns the names in a folder, sorted.
	ReadDir(path string) ([]string, error)
	Rename(from, to string) error
	// RemoveAll removes a file or a folder; one that is not there is fine.
	RemoveAll(path string) error
	// SyncDir makes the names in a folder durable, as Sync does for a file's content.
	SyncDir(path string) error
}

type writeFile interface {
	io.WriteCloser
	Sync() error
}

type readFile interface {
	io.ReaderAt
	io.Closer
	Size() int64 // when it was opened
}

// osFS is the operating system's file system.
type osFS struct{}

func (osFS) MkdirAll(path string) error   { return os.MkdirAll(path, 0o777) }
func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (osFS) Create(path string) (writeFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func (osFS) Open(path string) (readFile, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return osFile{f, size}, nil
}

func (osFS) ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osFS) SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct {
	*os.File
	size int64
}

func (f osFile) Size() int64 { return f.size }
