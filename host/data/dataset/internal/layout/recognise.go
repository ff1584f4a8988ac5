package layout

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Decision is how a list is read, and what a pass over it has shown.
type Decision struct {
	Layout
	Lines   int      // of the list: an estimate for progress
	Remarks []string // what is unusual about the list
	// AsBefore says that version 75a547d6 and older, which took the last column as the text, read the list alike.
	AsBefore bool
	NameLine int  // the number of the line with the names of the columns, 0 for none
	plain    bool // ids and texts as LJSpeech has them
}

// Recognise finds out how a list is laid out, or how one of the asked layout is written. Without an asked one, it
// returns a *Question if the list can be read in two ways.
func Recognise(src Source, asked *Layout) (*Decision, error) {
	head, err := src.head()
	if err != nil {
		return nil, err
	}
	if asked != nil && asked.Kind == Tree {
		return nil, fmt.Errorf("%s: a list, not a folder of the layout %s", src.List, asked.Name)
	}
	if ObjectsName(src.List) && IsArray(head) {
		return nil, ErrArray(filepath.Join(src.Dir, src.List))
	}
	objects := ObjectsName(src.List) || bytes.HasPrefix(bytes.TrimLeft(head, "\ufeff \t\r\n"), []byte("{"))
	switch {
	case asked != nil && asked.Name == "audiofolder" && objects: // both forms have the name
		asked = nil
	case asked != nil:
		objects = asked.Kind == Objects
	}
	if objects {
		return src.objects(asked)
	}
	return src.columns(asked, string(head))
}

// ObjectsName reports whether a name is one of a list of objects. NeMo manifests are often named .json.
func ObjectsName(name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	return ending == ".jsonl" || ending == ".json" || ending == ".ndjson"
}

// headSize is how much of a list is looked at for its separator and its header.
const headSize = 64 << 10

func (s *Source) head() ([]byte, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, headSize))
}

// lines returns the lines of a head; the last one may be cut.
func headLines(head string) (lines []string) {
	head = strings.TrimPrefix(head, "\ufeff")
	for line := range strings.FieldsFuncSeq(head, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	if len(head) >= headSize-8 && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// splitHead finds the separator and whether the first line has names. A header with known names decides; otherwise it
// is the first separator that most lines have.
func splitHead(lines []string) (sep byte, header []string) {
	if len(lines) == 0 {
		return '|', nil
	}
	order := []byte{'|', '\t', ',', ';'}
	for _, sep := range order {
		list, _ := fields(lines[0], sep, true)
		names := make([]string, len(list))
		for i := range list {
			names[i] = plainName(list[i])
		}
		if isHeader(names) {
			return sep, names
		}
	}
	for _, sep := range order {
		n := 0
		for _, line := range lines {
			if strings.IndexByte(line, sep) > 0 {
				n++
			}
		}
		if 2*n >= len(lines) && (sep == '|' || sep == '\t' || commaKeys(lines, sep)) {
			return sep, nil
		}
	}
	return '|', nil
}

// separator returns the comma or the semicolon of a list without another separator, if each line has one after what
// names a recording. With several in a line, some may be those of the text.
func (s *Source) separator(lines []string, sep byte) byte {
	if strings.Contains(strings.Join(lines, ""), string(sep)) {
		return sep
	}
	first := lines[:min(len(lines), 32)]
	for _, other := range []byte{';', ','} {
		var keys []string
		for _, line := range first {
			if key, text, ok := strings.Cut(line, string(other)); ok && !strings.Contains(text, string(other)) {
				keys = append(keys, strings.TrimSpace(key))
			}
		}
		if _, found := s.place(keys, mostlyPaths(keys)); found == len(first) {
			return other
		}
	}
	return sep
}

// commaKeys reports whether what is before the first comma is a path of a recording or one word: else commas are those
// of texts.
func commaKeys(lines []string, sep byte) bool {
	n := 0
	for _, line := range lines {
		key, _, _ := strings.Cut(line, string(sep))
		if HasEnding(strings.Trim(key, `" `)) {
			n++
		}
	}
	return 2*n > len(lines)
}
