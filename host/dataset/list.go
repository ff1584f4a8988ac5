package dataset

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/regular"
)

// layout names the lists of a folder. A split that has no list of its own takes all.
type layout struct{ train, eval, all string }

// layouts are the lists that a folder may have. The first layout of which there is any list counts, and the others are not
// looked at: two formats side by side are copies more often than parts.
var layouts = [...]layout{
	{"metadata_train.csv", "metadata_eval.csv", "metadata.csv"},
	{"train.jsonl", "eval.jsonl", "manifest.jsonl"},
}

// candidates are the lists of a split, in the order in which they are looked for.
func (l layout) candidates(split Split) []string {
	if split == Eval {
		return []string{l.eval, l.all}
	}
	return []string{l.train, l.all}
}

// layoutOf returns the layout of a folder; the first one when it has no list at all.
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

// HasEval reports whether a data set has a list of its own for evaluation. A JSON Lines file has none.
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
	file, err := isFile(path)
	if err != nil {
		return "", "", err
	}
	if file {
		if !jsonLines(path) {
			return "", "", hint.Errorf("give the folder of a data set, or a JSON Lines file", "a file that is neither .jsonl nor .json")
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
		"neither %s nor %s is there", names[0], names[1])
}

// jsonLines tells the format of a list by its name. Manifests of NeMo are called .json as often.
func jsonLines(name string) bool {
	return slices.Contains([]string{".jsonl", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// entry is one line of a list. A line that cannot be used has a reason; only its id, if it has one, still counts.
type entry struct {
	line   int
	id     string
	text   string // normalized
	reason string
	audio  string // path with slashes, absolute or from the list's folder; "" when the line does not say
	flac   bool   // where audio is missing, a .flac file of the same name will do
	part   part
	// speaker is shared by all who have the same; language is that of the data set when empty.
	speaker, language string
}

// parser reads one line. It returns an error when the line makes the whole list ambiguous.
type parser func(line string) (entry, error)

// MaxID is how many bytes an id may have. Each file that a run writes about its rows names them.
const MaxID = 500

// longID is why a line with a longer id is not used. The line then has no id, and is named by its place.
func longID(id string) string {
	return fmt.Sprintf("the id has %d bytes, more than %d", len(id), MaxID)
}

// Limits of a list.
const (
	maxLine     = 1 << 20 // bytes: a longer line is no line of a list, and is not read to its end
	maxReported = 5       // lines of one error message
)

// readList reads a list and its SHA-256.
func readList(file string) ([]entry, [sha256.Size]byte, error) {
	name, parse := filepath.Base(file), parser(parseLine)
	if jsonLines(name) {
		parse = parseObject(filepath.Dir(file))
	}
	var sum [sha256.Size]byte
	f, _, err := regular.Open(file)
	if err != nil {
		return nil, sum, err
	}
	defer f.Close()
	h := sha256.New()
	entries, err := parseList(name, io.TeeReader(f, h), parse)
	return entries, [sha256.Size]byte(h.Sum(nil)), err
}

// parseList reads the lines of a list. A byte order mark, CRLF line ends and empty lines are tolerated; a line that is
// not UTF-8 becomes an entry with a reason. The whole list is refused for ids that occur twice, because which rows
// there are would be ambiguous, for what parse refuses, and for a line that is too long. name is used in messages only.
func parseList(name string, r io.Reader, parse parser) ([]entry, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var entries []entry
	var errs []error
	seen := map[string]int{}
	n := 0
	for lines.Scan() {
		n++
		data := lines.Bytes()
		if n == 1 {
			data = bytes.TrimPrefix(data, []byte("\uFEFF"))
		}
		if data = bytes.TrimRight(data, "\r"); len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		e, err := entry{reason: "the line is not UTF-8"}, error(nil)
		if utf8.Valid(data) {
			e, err = parse(string(data))
		}
		e.line = n
		if first, ok := seen[e.id]; ok && e.id != "" && err == nil {
			err = hint.Errorf("an id names one clip: remove one of the lines, or give it another id", "id %q stands in line %d already", e.id, first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, n, err))
		}
		seen[e.id] = n
		entries = append(entries, e)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, hint.Errorf("each clip has a line of its own", "%s:%d: the line is longer than %d KiB", name, n+1, maxLine>>10)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n := len(errs); n > maxReported {
		errs = append(errs[:maxReported], fmt.Errorf("%s: and %d more such lines", name, n-maxReported))
	}
	return entries, errors.Join(errs...)
}
