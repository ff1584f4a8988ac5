package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// HasEval reports whether a data set has separate clips for evaluation. A file has none. before means by the rules of
// version 75a547d6 and older.
func HasEval(dir string, before bool) (bool, error) {
	if file, err := isFile(dir); file || err != nil {
		return false, err
	}
	f, err := layout.Find(dir, before)
	if err != nil {
		return false, err
	}
	if f.Tree != "" {
		return layout.TreeHasEval(f.Tree, dir)
	}
	return f.Eval != "" || f.Train != "" && severalSplits(dir, f.Train), nil
}

// severalSplits reports whether a list has clips of several splits.
func severalSplits(dir, list string) bool {
	if before, _, ok := strings.Cut(filepath.Base(list), "."); !ok || before != "metadata" {
		return false
	}
	head := make([]byte, 4096) // of a list with names; a pass over any other would take time
	f, err := files.Open(filepath.Join(dir, filepath.FromSlash(list)))
	if err != nil {
		return false
	}
	defer f.Close()
	if n, _ := f.ReadAt(head, 0); !bytes.Contains(head[:n], []byte("file_name")) {
		return false
	}
	d, err := layout.Recognise(source(filepath.Join(dir, filepath.Dir(list)), filepath.Base(list), ""), nil)
	return err == nil && d.Splits
}

func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !info.IsDir(), err
}

// place is where a data set has the clips of a split: a list in a folder, or a tree of a folder.
type place struct{ dir, list, tree string }

// locate returns the place of a data set.
func locate(path string, split Split, before bool) (place, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return place{}, hint.Errorf("a data set is a folder of one of the layouts of docs/data.md, or a list",
			"there is no such folder or file")
	}
	file, err := isFile(path)
	if err != nil {
		return place{}, err
	}
	if file {
		if !layout.CanBeList(path) {
			return place{}, hint.Errorf("use the folder of a data set, its metadata.csv, or a JSON Lines file",
				"a file that is neither .csv, .tsv, .txt, .list, .jsonl nor .json")
		}
		return place{dir: filepath.Dir(path), list: filepath.Base(path)}, nil
	}
	f, err := layout.Find(path, before)
	if err != nil {
		return place{}, err
	}
	list := f.Train
	if split == Eval && f.Eval != "" {
		list = f.Eval
	}
	switch {
	case f.Tree != "":
		return place{dir: path, list: ".", tree: f.Tree}, nil
	case list != "":
		list = filepath.FromSlash(list)
		return place{dir: filepath.Join(path, filepath.Dir(list)), list: filepath.Base(list)}, nil
	}
	missing := fmt.Sprintf("neither %s exists", strings.Join(f.Looked, " nor "))
	if len(f.Others) > 0 {
		return place{}, hint.Errorf("name the list: "+hint.Path(filepath.Join(path, f.Others[0])),
			"%s, nor another known list; there is %s", missing, strings.Join(f.Others, ", "))
	}
	return place{}, hint.Errorf("a data set is a folder with metadata.csv (id|text) and wavs/<id>.wav, of another "+
		"layout of docs/data.md, or a JSON Lines manifest",
		"%s", missing)
}

// source is a list with what recognises its layout.
func source(dir, list, flag string) layout.Source {
	return layout.Source{
		Dir: dir, List: list, Flag: cmp.Or(flag, "--list-layout"), MaxLine: maxLine, Clean: normalize,
		Find: func(audio string) (string, bool) {
			path := filepath.FromSlash(audio)
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			file, _, err := statAudio(path, true, nil)
			return file, err == nil
		},
		Seconds: func(file string) (float64, error) {
			r, err := openRecording(file)
			if err != nil {
				return 0, err
			}
			return float64(r.Frames) / float64(r.FileRate), nil
		},
	}
}

// parser parses one line, which is valid UTF-8 and which the entry does not refer to. It returns an error if the line
// makes the whole list ambiguous.
type parser func(line []byte) (entry, error)

// parserOf returns the parser of a list of a layout in a folder.
func parserOf(dir string, l *layout.Layout, split Split, columns *Columns) parser {
	switch {
	case l.Kind == layout.Tree:
		return parseItem
	case l.Kind == layout.Objects:
		return parseObject(dir, l, split, columns)
	}
	return parseTable(dir, l, split)
}

// entry is one line of a list. An unusable line has a reason; of its other fields, only the id, if it has one, is used.
type entry struct {
	line   int
	id     string
	text   string // normalized
	reason string
	audio  string // path with slashes, absolute or relative to the list's folder; "" if the line has none
	any    bool   // if the audio is missing, use a file of the same name with one of endings
	skip   bool   // the line is of another split
	part   part
	// speaker identifies rows of the same speaker. language may be empty, which means that of the data set.
	speaker, language string
	ignored           *ignored // nil if every key is known
	values            []Value  // of the columns; before its header is read, an array has no length
}

// MaxID is the maximum number of bytes of an id, because each file that a run writes about its rows contains ids.
const MaxID = 500

// MaxReason is the maximum number of bytes that are kept of the reason for an unusable row. It may have a command with
// three paths.
const MaxReason = 1000

// longID is the reason for a line with a longer id. The line then has no id and is named by its place.
func longID(id string) string {
	return fmt.Sprintf("the id has %d bytes, more than %d", len(id), MaxID)
}
