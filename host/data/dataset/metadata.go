package dataset

import (
	"cmp"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// parseTable returns the parser for lines of columns. It refuses ids that name a file outside the folder. Paths, which
// are written with an ending such as .wav or in a column of paths, may name any file, as in JSON Lines.
func parseTable(dir string, l *layout.Layout, split Split) parser {
	paths := l.HasPaths()
	speaks := hasRole(l, layout.Speaker)
	return func(line []byte) (entry, error) {
		c := l.Cut(string(line), normalize)
		e := entry{id: c.Key, text: c.Text, speaker: c.Speaker, language: c.Language, reason: c.Reason}
		if c.Reason != "" && c.Key == "" {
			return entry{reason: c.Reason}, nil
		}
		if e.id == "" {
			what := "id"
			if paths {
				what = "path"
			}
			e.reason = "the " + what + " is empty"
			return e, nil
		}
		if paths {
			e.id = insideOf(dir, c.Key)
			e.skip = l.Splits && !layout.InSplit(e.id, split == Eval)
		}
		if len(e.id) > MaxID {
			return entry{reason: longID(e.id)}, nil
		}
		if reason := controls(&e); reason != "" && (paths || !hasControl(e.id)) {
			e.reason = reason
			return e, nil
		}
		if !paths {
			if err := checkID(l.Base, e.id); err != nil {
				return e, err
			}
			if !speaks {
				e.speaker = speakerOf(e.id)
			}
		}
		e.audio, e.any = l.Audio(e.id), true
		if filepath.IsAbs(c.Key) { // below the folder it is relative by now
			e.audio = strings.TrimPrefix(e.audio, l.Base)
		}
		if e.text == "" {
			e.reason = "the text is empty"
		}
		return e, nil
	}
}

func hasRole(l *layout.Layout, role layout.Role) bool {
	for _, r := range l.Columns {
		if r == role {
			return true
		}
	}
	return false
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// controls says which name of an entry has a control character: messages contain names, and it would change the
// reader's terminal.
func controls(e *entry) string {
	for _, v := range [...]struct{ key, value string }{
		{"the path", e.id}, {"the speaker", e.speaker}, {"the language", e.language},
	} {
		if hasControl(v.value) {
			return fmt.Sprintf("%s %s has a control character", v.key, brief(strconv.Quote(v.value)))
		}
	}
	return ""
}

// checkID accepts ids that name a file below the base of a layout: separated by slashes, without "..", ".", empty
// elements or a leading slash.
func checkID(base, id string) error {
	base = cmp.Or(strings.TrimSuffix(base, "/"), "the folder of the data set")
	advice := "an id is a path below " + base + ", without .. and the ending, such as LJ001-0001 or A/0001"
	switch {
	case !fs.ValidPath(id) || id == "." || !filepath.IsLocal(filepath.FromSlash(id)):
		return hint.Errorf(advice, "id %q does not name a file under %s", id, base)
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
