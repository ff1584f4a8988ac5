// Package overwrite finds outputs of a command that are inputs of it, before the command writes anything:
//
//	err := overwrite.Check(
//		[]overwrite.Place{{Flag: "--out", Path: "me.wav"}},
//		[]overwrite.Place{{Flag: "--speaker", Path: "me.wav"}})
//
// Files are compared by their inodes, so links, hard links and other spellings of a path are the same file.
package overwrite

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Kind says what an input is if it is a folder: which files in it are the input.
type Kind int

// The kinds of inputs.
const (
	File    Kind = iota // a file; as a folder, only the folder itself
	Data                // lists, recordings and arrays
	Bundle              // bundle.json, and the files that it lists
	Run                 // settings, checkpoints, and what a run writes
	Plugins             // manifests, sums and programs
)

// Place is a file or folder that a command reads or writes.
type Place struct {
	Flag string // as an error names it
	Path string
	Kind Kind // of an input
}

// Check returns an error if an output is an input, or is in the folder of an input and belongs to it.
func Check(outputs, inputs []Place) error {
	for _, out := range outputs {
		info, err := os.Stat(out.Path)
		if err != nil {
			continue // what is not there is no input; who writes it reports other errors
		}
		for _, in := range inputs {
			if out.Flag == in.Flag {
				continue // a run that continues
			}
			if why := clash(out, info, in); why != "" {
				return hint.Errorf(advice(out, info), "%s is %s of %s: it would be overwritten", name(out), why,
					in.Flag)
			}
		}
	}
	return nil
}

func name(p Place) string {
	if isStream(p) {
		return p.Flag
	}
	return p.Flag + " " + p.Path
}

// isStream reports whether a place is a standard stream, which has no flag.
func isStream(p Place) bool { return !strings.HasPrefix(p.Flag, "--") }

func advice(out Place, info fs.FileInfo) string {
	switch {
	case isStream(out):
		return "redirect " + out.Flag + " to another file"
	case info.IsDir():
		return "name another folder with " + out.Flag
	}
	return "name another file with " + out.Flag
}

// clash says what of the input the output is, or "".
func clash(to Place, outInfo fs.FileInfo, in Place) string {
	out := to.Path
	inInfo, err := os.Stat(in.Path)
	if err != nil {
		return ""
	}
	if os.SameFile(outInfo, inInfo) {
		if inInfo.IsDir() {
			return "the folder"
		}
		return "the file"
	}
	if isStream(to) {
		return "" // redirected into the folder, to a file of its own
	}
	folder := in.Path
	switch {
	case inInfo.IsDir():
	case in.Kind == Data: // a list: its recordings are around it
		folder = filepath.Dir(in.Path)
	default:
		return ""
	}
	if outInfo.IsDir() {
		for _, below := range folders[in.Kind] {
			if info, err := os.Stat(filepath.Join(folder, below)); err == nil && os.SameFile(outInfo, info) {
				return "the folder " + below
			}
		}
		return ""
	}
	if !outInfo.Mode().IsRegular() {
		return ""
	}
	belongs := belongsTo(in.Kind, folder)
	for _, rel := range below(folder, out) {
		if belongs(rel) {
			return "a file"
		}
	}
	stat, ok := outInfo.Sys().(*syscall.Stat_t)
	if ok && stat.Nlink > 1 && linked(folder, folders[in.Kind], outInfo, belongs, maxWalk) {
		return "a file"
	}
	return ""
}

// folders are those in an input that belong to it.
var folders = map[Kind][]string{Data: {"wavs"}, Run: {rundir.Checkpoints}}

// below returns the paths of a file in a folder: as it is named, and where links lead to. It is empty outside.
func below(folder, file string) (rels []string) {
	folder, err := filepath.EvalSymlinks(folder)
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return nil
	}
	var places []string
	if parent, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		places = append(places, filepath.Join(parent, filepath.Base(file)))
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		places = append(places, real)
	}
	for _, p := range places {
		if p, err = filepath.Abs(p); err != nil {
			continue
		}
		if rel, err := filepath.Rel(folder, p); err == nil && filepath.IsLocal(rel) {
			rels = append(rels, rel)
		}
	}
	return rels
}

// errFound ends a walk.
var errFound = errors.New("found")

// maxWalk bounds the files and folders that are looked at: a list may be in a home folder or at the root of a disk. It
// is more than a large data set has.
const maxWalk = 200_000

// linked reports whether a file of the input has another name, as a hard link, among so many files and folders: first
// those in the folders that all belong to it.
func linked(folder string, first []string, out fs.FileInfo, belongs func(rel string) bool, left int) bool {
	look := func(path string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil // what cannot be read is no input
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil || !belongs(rel) {
			return nil
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(info, out) {
			return errFound
		}
		return nil
	}
	for _, below := range append(slices.Clone(first), ".") {
		if errors.Is(filepath.WalkDir(filepath.Join(folder, below), look), errFound) {
			return true
		}
	}
	return false
}

// The files of inputs, by their paths in the folder.
var (
	ofData = regexp.MustCompile(`(?i)\.(csv|tsv|txt|jsonl|wav|wave|flac|ogg|oga|opus|mp3|npy|safetensors)$`)
	ofRun  = regexp.MustCompile(`^((` + anyOf(
		rundir.Checkpoints, rundir.SamplesFolder, rundir.ProbesFolder, rundir.BoardFolder,
	) + `)/.*|` + anyOf(
		rundir.SettingsFile, rundir.LogFile, rundir.MetricsFile, rundir.EvalFile, rundir.ChangesFile,
		rundir.QuarantineFile, rundir.ExcludedFile, rundir.SpokenFile, rundir.ProbesFile, rundir.ReportFile,
		rundir.SpeakersFile, rundir.FoldersFile, rundir.LockFile, "languages.json",
	) + `)$`) // not the page, which a command writes anew
	ofPlugins = regexp.MustCompile(`(^|/)(plugin\.json|plugin\.sum)$|\.(py|so)$`)
)

// anyOf is a pattern of names.
func anyOf(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(quoted, "|")
}

// belongsTo returns which files in a folder belong to an input.
func belongsTo(kind Kind, folder string) func(rel string) bool {
	switch kind {
	case Data:
		return ofData.MatchString
	case Run:
		return func(rel string) bool {
			_, ofNaN := rundir.ParseNaNFile(rel)
			return ofNaN || ofRun.MatchString(rel)
		}
	case Plugins:
		return func(rel string) bool {
			info, err := os.Stat(filepath.Join(folder, rel))
			return ofPlugins.MatchString(rel) || err == nil && info.Mode()&0o111 != 0
		}
	case Bundle:
		var listed struct{ Files map[string]string }
		if data, err := files.Read(filepath.Join(folder, "bundle.json"), 1<<20); err == nil {
			_ = json.Unmarshal(data, &listed) // who loads it reports what is wrong
		}
		return func(rel string) bool {
			_, ok := listed.Files[rel]
			return ok || rel == "bundle.json"
		}
	}
	return func(string) bool { return false }
}
