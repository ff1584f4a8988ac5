package datafolder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The most files of a folder, and the most folders that one is in: each process of a plugin gets the list in one
// message, and links can make a tree that does not end.
const (
	maxFiles = 200_000
	maxDepth = 32
)

// file is a file before it is read.
type file struct {
	name  string // below the folder, with /
	size  int64
	state state
}

// tree is what is in a folder.
type tree struct {
	ctx     context.Context
	root    string
	files   []file
	leftOut []LeftOut
}

var errFile = errors.New("that is a file, not a folder")

// walk finds the files of a folder, in the order of their names.
func walk(ctx context.Context, root string) (*tree, error) {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such folder")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errFile
	}
	t := &tree{ctx: ctx, root: root}
	if err := t.in("", []fs.FileInfo{info}); err != nil {
		return nil, err
	}
	slices.SortFunc(t.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// in walks a folder. above are the folders that it is in, and itself.
func (t *tree) in(rel string, above []fs.FileInfo) error {
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	here := filepath.Join(t.root, rel)
	entries, err := files.In(here).ReadDir()
	if errors.Is(err, fs.ErrPermission) {
		return hint.Errorf("make it readable: chmod -R u+rX "+hint.Word(here), "%w", err)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, ".") || name == "lost+found" {
			continue
		}
		if err := t.add(path.Join(rel, e.Name()), above); err != nil {
			return err
		}
	}
	return nil
}

// add adds what is at a name below the root: a file, or a folder with what is in it.
func (t *tree) add(name string, above []fs.FileInfo) error {
	at := filepath.Join(t.root, name)
	info, err := files.Stat(at) // of what a link leads to
	switch {
	case info != nil && info.IsDir():
		if slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, info) }) {
			return nil // a link back
		}
		if len(above) == maxDepth {
			return fmt.Errorf("%s: more than %d folders deep", name, maxDepth)
		}
		return t.in(name, append(slices.Clip(above), info))
	case errors.Is(err, fs.ErrNotExist):
		t.leaveOut(name, "a link that leads nowhere")
	case errors.Is(err, syscall.ELOOP):
		t.leaveOut(name, "a link to itself")
	case files.OfMachine(err):
		return err
	case err != nil:
		t.leaveOut(name, reason(err))
	case !utf8.ValidString(name):
		t.leaveOut(name, "the name is not UTF-8")
	case len(t.files) == maxFiles:
		return hint.Errorf("put the files into fewer, larger ones", "more than %d files", maxFiles)
	default:
		t.files = append(t.files, file{name, info.Size(), dataset.StateOf(at, info)})
	}
	return nil
}

func (t *tree) leaveOut(name, why string) { t.leftOut = append(t.leftOut, LeftOut{name, why}) }
