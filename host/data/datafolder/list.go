package datafolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Hash is that of the names and contents of files. The same contents under other names are another folder: a stage may
// choose a file by its name, or its place in the list.
func Hash(all []catalog.DataFile) string {
	h := sha256.New()
	for i := range all {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(all[i].Name))))
		io.WriteString(h, all[i].Name)
		h.Write(all[i].SHA256[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The most bytes of the list of all folders in the message to a plugin, which has at most 64 MiB, and those of a file
// beside its name.
const (
	maxMessage = 56 << 20
	perFile    = 56
)

// checkSize refuses folders whose list is too long for the message to a plugin.
func checkSize(all []Folder) error {
	size, count := 0, 0
	for i := range all {
		count += len(all[i].Files)
		for _, f := range all[i].Files {
			size += len(f.Name) + perFile
		}
	}
	if size > maxMessage {
		return hint.Errorf("put the files into fewer, larger ones", "data folders: %d files are too many", count)
	}
	return nil
}

// line is a file in the list of a run folder.
type line struct {
	Folder string `json:"folder"`
	File   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// WriteLists keeps the files of all folders in a run folder, so that a resume can name those that have changed.
func WriteLists(run string, all []Folder) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range all {
		for _, f := range all[i].Files {
			if err := enc.Encode(line{all[i].Title, f.Name, f.Size, hex.EncodeToString(f.SHA256[:])}); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(run, rundir.FoldersFile)
	if _, err := files.At(path).Lstat(); b.Len() == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return disk.Replace(path, visible.JSON(b.Bytes()))
}

// maxLists bounds the file, in bytes.
const maxLists = 1 << 30

// ReadLists reads the files of all folders that WriteLists has written, by the names of the folders. A run without data
// folders has none.
func ReadLists(run string) (map[string][]catalog.DataFile, error) {
	path := filepath.Join(run, rundir.FoldersFile)
	data, err := files.At(path).Read(maxLists)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string][]catalog.DataFile{}
	for text := range bytes.Lines(data) {
		var l line
		f := catalog.DataFile{}
		err := json.Unmarshal(text, &l)
		if sum, bad := hex.DecodeString(l.SHA256); err == nil && bad == nil && len(sum) == len(f.SHA256) {
			f.Name, f.Size, f.SHA256 = l.File, l.Size, [sha256.Size]byte(sum)
			all[l.Folder] = append(all[l.Folder], f)
			continue
		}
		return nil, fmt.Errorf("%s: a line that is none of a list", path)
	}
	return all, nil
}

// Differences says what has become of files: one line for each that was removed, has other content, or was added.
func Differences(was, is []catalog.DataFile) []string {
	now := map[string]*catalog.DataFile{}
	for i := range is {
		now[is[i].Name] = &is[i]
	}
	var removed, changed, added []string
	for i := range was {
		f := &was[i]
		switch other := now[f.Name]; {
		case other == nil:
			removed = append(removed, "removed: "+shown(f.Name))
		case other.SHA256 != f.SHA256:
			changed = append(changed, "changed: "+shown(f.Name))
		}
		delete(now, f.Name)
	}
	for name := range now {
		added = append(added, "added: "+shown(name))
	}
	slices.Sort(added)
	return slices.Concat(removed, changed, added)
}

// shown is a name for a terminal.
func shown(name string) string { return visible.Short(name, 200) }
