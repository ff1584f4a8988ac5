package datafolder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/shared/folder"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// maxFiles is the most files of a folder: each process of a plugin gets the list in one message.
const maxFiles = 200_000

// file is a file before it is read.
type file struct {
	name  string // below the folder, with /
	size  int64
	state state
}

// tree is what is in a folder.
type tree struct {
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
	t := &tree{root: root}
	readDir := func(here string) ([]fs.DirEntry, error) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		entries, err := files.In(here).ReadDir()
		if errors.Is(err, fs.ErrPermission) {
			err = hint.Errorf("make it readable: chmod -R u+rX "+hint.Word(here), "%w", err)
		}
		return entries, err
	}
	if err := folder.Walk(folder.Disk{ReadDir: readDir, Stat: files.Stat}, root, t.add); err != nil {
		return nil, err
	}
	slices.SortFunc(t.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// add adds the file at a name below the root.
func (t *tree) add(name string, info fs.FileInfo, err error) error {
	switch {
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
		t.files = append(t.files, file{name, info.Size(), dataset.StateOf(filepath.Join(t.root, name), info)})
	}
	return nil
}

func (t *tree) leaveOut(name, why string) { t.leftOut = append(t.leftOut, LeftOut{name, why}) }
