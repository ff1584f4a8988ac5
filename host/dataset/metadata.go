package dataset

import (
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// parseLine parses a line of metadata.csv: columns separated by '|', without quoting. The first is the id, the last
// non-empty one the text. It refuses ids that name a file outside the folder.
func parseLine(line []byte) (entry, error) {
	columns := strings.Split(string(line), "|")
	if len(columns) == 1 {
		return entry{reason: "no '|' between id and text"}, nil
	}
	e := entry{id: strings.TrimSpace(columns[0])}
	for _, c := range columns[1:] {
		if c = normalize(c); c != "" {
			e.text = c
		}
	}
	if e.id == "" {
		e.reason = "the id is empty"
		return e, nil
	}
	if len(e.id) > MaxID {
		return entry{reason: longID(e.id)}, nil
	}
	if err := checkID(e.id); err != nil {
		return e, err
	}
	e.audio, e.any, e.speaker = "wavs/"+e.id+".wav", true, speakerOf(e.id)
	if e.text == "" {
		e.reason = "the text is empty"
	}
	return e, nil
}

// checkID accepts ids that name a file below wavs: separated by slashes, without "..", ".", empty elements or a leading
// slash.
func checkID(id string) error {
	const advice = "an id is a path below wavs, without .. and the ending, such as LJ001-0001 or A/0001"
	switch {
	case !fs.ValidPath(id) || id == "." || !filepath.IsLocal(filepath.FromSlash(id)):
		return hint.Errorf(advice, "id %q does not name a file under wavs", id)
	case strings.ContainsFunc(id, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
		return hint.Errorf(advice, "id %q has a backslash or a control character", id)
	}
	return nil
}

// speakerOf returns the first element of an id such as A/0001. Ids without "/" share the speaker "".
func speakerOf(id string) string {
	speaker, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return speaker
}
