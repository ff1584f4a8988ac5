// Package datafolder reads the folders of files that stages of plugins use, such as recordings of noise: which files
// there are, which of them can be used, and what is in them.
//
//	f, err := datafolder.Open(ctx, datafolder.Config{Title: "mix.noise", Path: "noise", Kind: manifest.AudioData})
//	...
//	fmt.Println(f.Hash, len(f.Files), f.LeftOut)
//
// A folder is known by the names and the contents of its files, not by its path. Hidden files are left out, and links
// are followed, as in a data set.
package datafolder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Config names a folder.
type Config struct {
	Title string // as messages name it, and --plugin-data: INSTANCE.NAME
	Path  string
	Kind  string // manifest.AudioData or FileData
	// CacheDir keeps what is in the files, so that the next start reads only those that have changed. It may be empty.
	CacheDir string
	Progress dataset.Progress // may be nil
}

// Folder is a folder with the files that can be used.
type Folder struct {
	catalog.DataFolder
	Title      string
	Kind       string
	LeftOut    []LeftOut
	CacheError error // why the next start has to read all files again
}

// LeftOut is a file that cannot be used.
type LeftOut struct{ Name, Reason string }

func (l LeftOut) String() string { return l.Name + ": " + l.Reason }

// Bytes is the size of all files.
func (f *Folder) Bytes() (n int64) {
	for i := range f.Files {
		n += f.Files[i].Size
	}
	return n
}

// Seconds is the length of all recordings.
func (f *Folder) Seconds() (n float64) {
	for i := range f.Files {
		n += f.Files[i].Seconds
	}
	return n
}

// anyRate is a sample rate for which recordings are opened: their lengths in seconds do not depend on it.
const anyRate = 24000

// Open reads a folder. It reads the content of the files that the cache does not know.
func Open(ctx context.Context, cfg Config) (*Folder, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, err
	}
	f := &Folder{DataFolder: catalog.DataFolder{Path: path}, Title: cfg.Title, Kind: cfg.Kind}
	found, err := walk(ctx, path)
	if errors.Is(err, errFile) {
		err = hint.Errorf("name the folder that it is in with --plugin-data "+
			hint.Path(f.Title+"="+filepath.Dir(path)), "%w", err)
	}
	if err != nil {
		return nil, f.refuse(err)
	}
	f.LeftOut = found.leftOut
	known := loadCache(cfg.CacheDir, path, cfg.Kind)
	if err := f.read(ctx, found.files, known, cfg.Progress); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", cfg.Title, err)
	}
	f.CacheError = known.store()
	if len(f.Files) == 0 {
		return nil, f.refuse(f.nothing())
	}
	slices.SortFunc(f.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.Name, b.Name) })
	f.Hash = Hash(f.Files)
	return f, nil
}

// OpenAll reads the data folders of a pipeline, each once, and gives its instances their files.
func OpenAll(
	ctx context.Context, instances []catalog.Instance, cacheDir string, progress dataset.Progress,
) (all []Folder, err error) {
	type place struct{ path, kind string }
	read := map[place]*Folder{}
	if err := missing(instances); err != nil {
		return nil, err
	}
	for k := range instances {
		in := &instances[k]
		for _, name := range slices.Sorted(maps.Keys(in.Data)) {
			at := place{in.Data[name].Path, in.Stage.Data[name].Kind}
			title := catalog.DataName(in.Name, name)
			if read[at] == nil {
				if read[at], err = Open(ctx, Config{
					Title: title, Path: at.path, Kind: at.kind, CacheDir: cacheDir, Progress: progress,
				}); err != nil {
					return nil, err
				}
			}
			f := *read[at]
			f.Title, in.Data[name] = title, f.DataFolder
			all = append(all, f)
		}
	}
	return all, checkSize(all)
}

// missing refuses several folders that are not there at once. Open refuses a single one.
func missing(instances []catalog.Instance) error {
	var named, flags []string
	for k := range instances {
		for _, name := range slices.Sorted(maps.Keys(instances[k].Data)) {
			path, title := instances[k].Data[name].Path, catalog.DataName(instances[k].Name, name)
			if _, err := files.Stat(path); errors.Is(err, fs.ErrNotExist) {
				named, flags = append(named, title+": "+path), append(flags, "--plugin-data "+title+"=DIR")
			}
		}
	}
	if len(named) < 2 {
		return nil
	}
	return hint.Errorf("name the folders where they are with "+strings.Join(flags, " "),
		"there are no such data folders: %s", strings.Join(named, ", "))
}

// refuse names the folder in an error, and says how to name another one.
func (f *Folder) refuse(err error) error {
	return hint.Errorf(cmp.Or(hint.Of(err), "name the folder where it is with --plugin-data "+f.Title+"=DIR"),
		"data folder %s: %s: %w", f.Title, f.Path, err)
}

// nothing is the error of a folder without a file that can be used.
func (f *Folder) nothing() error {
	what := "files"
	if f.Kind == manifest.AudioData {
		what = "recordings"
	}
	advice := "put " + what + " into it, or name another folder with --plugin-data " + f.Title + "=DIR"
	if len(f.LeftOut) == 0 {
		return hint.Errorf(advice, "there are no files in it")
	}
	return hint.Errorf(advice, "no %s can be used: left out %s, the first because: %s", strings.TrimSuffix(what, "s"),
		units.Count(len(f.LeftOut), "file"), f.LeftOut[0])
}

// read completes the files that can be used.
func (f *Folder) read(ctx context.Context, all []file, known *cache, progress dataset.Progress) error {
	done := make([]record, len(all))
	reasons := make([]error, len(all))
	var unread []int
	for i := range all {
		var ok bool
		if done[i], ok = known.find(all[i].state); !ok {
			unread = append(unread, i)
		}
	}
	report := func(done int) {
		if progress != nil {
			progress("files of data folder "+f.Title, done, len(unread))
		}
	}
	if err := dataset.Each(ctx, min(8, 2*runtime.GOMAXPROCS(0)), len(unread), report, func(n int) error {
		i := unread[n]
		done[i], reasons[i] = readFile(filepath.Join(f.Path, all[i].name), f.Kind, all[i].state)
		if files.OfMachine(reasons[i]) {
			return reasons[i]
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range all {
		if err := reasons[i]; err != nil {
			f.LeftOut = append(f.LeftOut, LeftOut{all[i].name, reason(err)})
			continue
		}
		known.add(done[i])
		f.Files = append(f.Files, catalog.DataFile{
			Name: all[i].name, Size: all[i].size, Seconds: done[i].seconds, SHA256: done[i].sum,
		})
	}
	return nil
}

// reason is an error without the path, which the name of the file says already, and without its hint, which is about
// the lines of a list.
func reason(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Error() == err.Error() {
		err = at.Err
	}
	return err.Error()
}

// readFile reads the header of a recording, and hashes a file.
func readFile(path, kind string, state state) (record, error) {
	r := record{state: state}
	if kind == manifest.AudioData {
		clip, err := dataset.OpenClip(path, anyRate)
		if err != nil {
			return r, err
		}
		r.seconds = float64(clip.Frames) / float64(clip.FileRate)
	}
	f, err := files.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return r, err
	}
	h.Sum(r.sum[:0])
	return r, nil
}
