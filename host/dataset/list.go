package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// layout is the names of the lists of a folder. A split without its own list uses the common one.
type layout struct{ train, eval, all string }

// layouts are the possible lists of a folder. The first layout with an existing list counts, and the others are
// ignored: two formats in one folder are usually copies.
var layouts = [...]layout{
	{"metadata_train.csv", "metadata_eval.csv", "metadata.csv"},
	{"train.jsonl", "eval.jsonl", "manifest.jsonl"},
}

// candidates returns the lists of a split, in the order of search.
func (l layout) candidates(split Split) []string {
	if split == Eval {
		return []string{l.eval, l.all}
	}
	return []string{l.train, l.all}
}

// layoutOf returns the layout of a folder, or the first one if the folder has no list.
func layoutOf(dir string) (layout, error) {
	for _, l := range layouts {
		for _, name := range []string{l.train, l.eval, l.all} {
			if ok, err := exists(filepath.Join(dir, name)); ok || err != nil {
				return l, err
			}
		}
	}
	return layouts[0], nil
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// HasEval reports whether a data set has a separate list for evaluation. A file has none.
func HasEval(dir string) (bool, error) {
	if file, err := isFile(dir); file || err != nil {
		return false, err
	}
	l, err := layoutOf(dir)
	if err != nil {
		return false, err
	}
	return exists(filepath.Join(dir, l.eval))
}

func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !info.IsDir(), err
}

// locate returns the folder and the list of a data set.
func locate(path string, split Split) (dir, list string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", "", hint.Errorf("a data set is a folder as LJSpeech has it, a list of one, or a JSON Lines manifest (docs/data.md)", "there is no such folder or file")
	}
	file, err := isFile(path)
	if err != nil {
		return "", "", err
	}
	if file {
		if !jsonLines(path) && strings.ToLower(filepath.Ext(path)) != ".csv" {
			return "", "", hint.Errorf("use the folder of a data set, its metadata.csv, or a JSON Lines file", "a file that is neither .csv, .jsonl nor .json")
		}
		return filepath.Dir(path), filepath.Base(path), nil
	}
	l, err := layoutOf(path)
	if err != nil {
		return "", "", err
	}
	names := l.candidates(split)
	for _, name := range names {
		if ok, err := exists(filepath.Join(path, name)); ok || err != nil {
			return path, name, err
		}
	}
	return "", "", hint.Errorf("a data set is a folder with metadata.csv (id|text) and wavs/<id>.wav, or a JSON Lines manifest (docs/data.md)",
		"neither %s nor %s exists", names[0], names[1])
}

// jsonLines recognizes the format of a list by its name. NeMo manifests are often named .json.
func jsonLines(name string) bool {
	return slices.Contains([]string{".jsonl", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// parser parses one line, which is valid UTF-8 and which the entry does not refer to. It returns an error if the line
// makes the whole list ambiguous.
type parser func(line []byte) (entry, error)

// parserOf returns the parser of a list file.
func parserOf(file string, columns *Columns) parser {
	if jsonLines(filepath.Base(file)) {
		return parseObject(filepath.Dir(file), columns)
	}
	return parseLine
}

// entry is one line of a list. An unusable line has a reason; of its other fields, only the id, if it has one, is used.
type entry struct {
	line   int
	id     string
	text   string // normalized
	reason string
	audio  string // path with slashes, absolute or relative to the list's folder; "" if the line has none
	any    bool   // if the audio is missing, use a file of the same name with one of endings
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
