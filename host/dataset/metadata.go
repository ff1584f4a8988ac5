package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The lists of an LJSpeech folder.
const (
	listAll   = "metadata.csv"
	listTrain = "metadata_train.csv"
	listEval  = "metadata_eval.csv"
)

// entry is one line of a list. A line that cannot be used has a reason; only its id, if it has one, still counts.
type entry struct {
	line   int
	id     string
	text   string
	reason string
}

// maxReported bounds the lines of one error message.
const maxReported = 5

// parseList reads a list: columns split at '|', without quoting; the first is the id, the last one that is not empty the
// text. A byte order mark, CRLF line ends and empty lines are tolerated. Ids that name a file outside the folder, or
// that occur twice, refuse the whole list, because which rows there are would be ambiguous; any other bad line
// becomes an entry with a reason. name is used in messages only.
func parseList(name string, data []byte) ([]entry, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var entries []entry
	var errs []error
	seen := map[string]int{}
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text = strings.TrimRight(text, "\r\n")
		if strings.TrimSpace(text) == "" {
			continue
		}
		e := parseLine(text)
		e.line = line
		if e.id != "" {
			if err := checkID(e.id); err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %w", name, line, err))
			} else if first, ok := seen[e.id]; ok {
				errs = append(errs, fmt.Errorf("%s:%d: id %q stands in line %d already", name, line, e.id, first))
			}
			seen[e.id] = line
		}
		entries = append(entries, e)
	}
	if n := len(errs); n > maxReported {
		errs = append(errs[:maxReported], fmt.Errorf("%s: and %d more such lines", name, n-maxReported))
	}
	return entries, errors.Join(errs...)
}

func parseLine(line string) entry {
	if !utf8.ValidString(line) {
		return entry{reason: "the line is not UTF-8"}
	}
	columns := strings.Split(line, "|")
	e := entry{id: strings.TrimSpace(columns[0])}
	for _, c := range columns[1:] {
		if c = strings.TrimSpace(c); c != "" {
			e.text = c
		}
	}
	switch {
	case len(columns) == 1:
		e = entry{reason: "no '|' between id and text"}
	case e.id == "":
		e.reason = "the id is empty"
	case e.text == "":
		e.reason = "the text is empty"
	}
	return e
}

// checkID accepts what names a file under wavs: slash-separated, without "..", ".", empty elements or a leading slash.
func checkID(id string) error {
	switch {
	case !fs.ValidPath(id) || id == "." || !filepath.IsLocal(filepath.FromSlash(id)):
		return fmt.Errorf("id %q does not name a file under wavs", id)
	case strings.ContainsFunc(id, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
		return fmt.Errorf("id %q has a backslash or a control character", id)
	}
	return nil
}

// speakerOf returns the first element of an id such as A/0001. Ids without one share the speaker "".
func speakerOf(id string) string {
	speaker, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return speaker
}
