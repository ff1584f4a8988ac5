package stage

import (
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// DataFolder is a folder of files on the machine of the run, such as recordings of noise. Files are those that the
// stage may use, in the order of their names: they are a part of what the run is. Others in the folder are not, and a
// run that depends on them cannot be repeated.
type DataFolder struct {
	Path  string // absolute
	Files []DataFile
}

// DataFile is a file of a data folder.
type DataFile struct {
	Name   string // relative to the folder, with /
	Size   int64  // bytes
	SHA256 []byte // of the content

	folder string
}

// Path returns where the file is.
func (f DataFile) Path() string { return filepath.Join(f.folder, filepath.FromSlash(f.Name)) }

func dataFolders(all map[string]*stagepb.DataFolder) map[string]DataFolder {
	out := make(map[string]DataFolder, len(all))
	for name, folder := range all {
		d := DataFolder{Path: folder.Path, Files: make([]DataFile, len(folder.Files))}
		for i, f := range folder.Files {
			d.Files[i] = DataFile{Name: f.Name, Size: int64(f.Size), SHA256: f.Sha256, folder: folder.Path}
		}
		out[name] = d
	}
	return out
}
