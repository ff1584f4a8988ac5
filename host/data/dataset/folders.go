package dataset

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const (
	// manyMissing is the number of files that are missing in a folder before its names are read: each is looked for
	// under up to 20 names, and reading the names once is cheaper.
	manyMissing = 100
	// maxNames bounds the names of a folder that are read.
	maxNames = 100_000
)

// folders look for files that are probably missing. nil asks for each. It is safe for concurrent use.
type folders struct {
	mu  sync.Mutex
	all map[string]*folderNames
}

// folderNames are the names in a folder, once many files were missing there.
type folderNames struct {
	missing int
	once    sync.Once
	known   map[string]bool // nil if they cannot be read, or are too many
}

// Stat is files.Stat, without the call for what is certainly not there.
func (f *folders) Stat(path string) (fs.FileInfo, error) {
	if f == nil {
		return files.Stat(path)
	}
	dir, base := filepath.Split(path)
	names := f.of(dir)
	// A name that is longer than a file's is another error, and no folder has the names of itself and its parent.
	if len(base) < 250 && base != "" && base != "." && base != ".." && names != nil {
		names.once.Do(func() { names.read(dir) })
		if names.known != nil && !names.known[alike(base)] {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}
		}
	}
	return files.Stat(path)
}

// Missing counts a file that is not there.
func (f *folders) Missing(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, _ := filepath.Split(path)
	n := f.all[dir]
	if n == nil {
		if f.all == nil || len(f.all) == maxFiles {
			f.all = map[string]*folderNames{}
		}
		n = new(folderNames)
		f.all[dir] = n
	}
	n.missing++
}

// of returns a folder in which many files are missing, or nil.
func (f *folders) of(dir string) *folderNames {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.all[dir]; n != nil && n.missing >= manyMissing {
		return n
	}
	return nil
}

func (n *folderNames) read(dir string) {
	list, complete, err := files.Names(filepath.Clean(dir), maxNames)
	if !complete && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	n.known = make(map[string]bool, len(list))
	for _, name := range list {
		n.known[alike(name)] = true
	}
}

// alike is the same for names that a system may take for the same file.
func alike(name string) string { return norm.NFC.String(strings.ToLower(norm.NFC.String(name))) }
