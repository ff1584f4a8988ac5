package archive

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// wasAdded ends what changes says of a file that the index does not have.
const wasAdded = " was added"

// OnlyAdded reports whether changes are of files that were added, so that removing them is enough.
func OnlyAdded(changes []string) bool {
	return !slices.ContainsFunc(changes, func(c string) bool { return !strings.HasSuffix(c, wasAdded) })
}

// changes compares the files of a folder with the index, and says what each is that differs. Folders that are made on
// each machine, and links to such, are left out.
func (ix *Index) changes(dir files.Path) (list []string, err error) {
	for _, want := range ix.Files {
		have, err := describeFile(dir.Join(want.Name))
		have.Name = want.Name
		switch {
		case errors.Is(err, fs.ErrNotExist):
			list = append(list, want.Name+" is missing")
		case err != nil:
			list = append(list, want.Name+" is no file that can be read")
		case have != want:
			list = append(list, want.Name+" has changed")
		}
	}
	added, err := ix.added(dir, "")
	return append(list, added...), err
}

// added returns the files below a folder that the index does not have.
func (ix *Index) added(dir files.Path, below string) (list []string, err error) {
	entries, err := dir.ReadDir()
	for _, e := range entries {
		name := below + e.Name()
		if Made(e.Name()) && leadsToFolder(dir.Join(e.Name()), e) {
			continue
		}
		if !e.IsDir() {
			if _, ok := ix.File(name); !ok {
				list = append(list, name+wasAdded)
			}
			continue
		}
		inner, ierr := ix.added(dir.Join(e.Name()), name+"/")
		list, err = append(list, inner...), errors.Join(err, ierr)
	}
	return list, err
}

// leadsToFolder reports whether an entry is a folder, or a link to one: an environment may be elsewhere.
func leadsToFolder(at files.Path, e fs.DirEntry) bool {
	if e.Type() != fs.ModeSymlink {
		return e.IsDir()
	}
	info, err := os.Stat(at.String())
	return err == nil && info.IsDir()
}
