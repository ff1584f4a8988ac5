package checkpoint

import (
	"io"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
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

// folderFS is the operating system's file system below a folder, in which no link is followed.
type folderFS string

// at is where a path below the folder leads.
func (f folderFS) at(path string) files.Path {
	name, err := filepath.Rel(string(f), path)
	if err != nil {
		name = path // not below the folder, which files refuses
	}
	return files.In(string(f), name)
}

func (f folderFS) MkdirAll(path string) error   { return f.at(path).MkdirAll() }
func (f folderFS) Rename(from, to string) error { return f.at(from).Rename(f.at(to)) }
func (f folderFS) RemoveAll(path string) error  { return f.at(path).RemoveAll() }
func (f folderFS) SyncDir(path string) error    { return f.at(path).SyncDir() }

func (f folderFS) Create(path string) (writeFile, error) { return f.at(path).New() }
func (f folderFS) Open(path string) (readFile, error)    { return f.at(path).Open() }

func (f folderFS) ReadDir(path string) ([]string, error) {
	entries, err := f.at(path).ReadDir()
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}
