// Package folder lists data folders as docs/plugin-protocol.md says: the host for a run, and stagetest for a test.
package folder

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// MaxDepth is the most folders that one is in: links can make a tree that does not end.
const MaxDepth = 32

// Disk is how folders are read: os.ReadDir and os.Stat, or others that wait for a disk. Stat may return an error
// together with the info of a folder.
type Disk struct {
	ReadDir func(path string) ([]fs.DirEntry, error)
	Stat    func(path string) (fs.FileInfo, error)
}

// Walk calls visit with each file in a folder and in the folders in it: with its name below the folder, with /, and
// with what Stat says of it. Links are followed, but not back to a folder that they are in. Hidden files and lost+found
// are left out.
func Walk(disk Disk, root string, visit func(name string, info fs.FileInfo, err error) error) error {
	info, err := disk.Stat(root)
	if info == nil {
		return err
	}
	w := walk{disk, root, visit}
	return w.in("", []fs.FileInfo{info})
}

type walk struct {
	disk  Disk
	root  string
	visit func(name string, info fs.FileInfo, err error) error
}

// in walks a folder. above are the folders that it is in, and itself.
func (w *walk) in(rel string, above []fs.FileInfo) error {
	entries, err := w.disk.ReadDir(filepath.Join(w.root, rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, ".") || name == "lost+found" {
			continue
		}
		if err := w.at(path.Join(rel, e.Name()), above); err != nil {
			return err
		}
	}
	return nil
}

// at walks what is at a name below the root: a file, or a folder with what is in it.
func (w *walk) at(name string, above []fs.FileInfo) error {
	info, err := w.disk.Stat(filepath.Join(w.root, name)) // of what a link leads to
	switch {
	case info == nil || !info.IsDir():
		return w.visit(name, info, err)
	case slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, info) }):
		return nil // a link back
	case len(above) == MaxDepth:
		return fmt.Errorf("%s: more than %d folders deep", name, MaxDepth)
	}
	return w.in(name, append(slices.Clip(above), info))
}
