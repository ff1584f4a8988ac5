package archive

import (
	"errors"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// changes compares the files of a folder with the index, and says what each is that differs. Folders that are made on
// each machine are left out.
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
		if !e.IsDir() {
			if _, ok := ix.File(name); !ok {
				list = append(list, name+" was added")
			}
			continue
		}
		if Made(e.Name()) {
			continue
		}
		inner, ierr := ix.added(dir.Join(e.Name()), name+"/")
		list, err = append(list, inner...), errors.Join(err, ierr)
	}
	return list, err
}
