package layout

import (
	"fmt"
	"path"
	"strings"
)

// Line is what a line of a table says.
type Line struct {
	Key      string // the id or the path, as it is written
	Text     string
	Speaker  string
	Language string
	Reason   string // why the line cannot be used
}

// Cut reads a line. clean normalizes a text.
func (l *Layout) Cut(line string, clean func(string) string) (c Line) {
	if l.Loose {
		return cutLoose(line, clean)
	}
	c.Language = l.Language
	list, strict := fields(strings.TrimRight(line, "\r\n"), l.Separator, l.Quotes == Yes)
	if !strict {
		c.Reason = "a quoted field does not end before the next column"
		return c
	}
	if len(list) == 1 && len(l.Columns) > 1 {
		c.Reason = fmt.Sprintf("no '%s' between %s and %s", shown(l.Separator), l.Columns[0].keyName(),
			l.Columns[1].keyName())
		return c
	}
	for len(list) > len(l.Columns) && strings.TrimSpace(list[len(list)-1]) == "" {
		list = list[:len(list)-1]
	}
	if rest := len(l.Columns) - 1; l.Columns[rest] == Rest && len(list) > rest {
		list = append(list[:rest], strings.Join(list[rest:], string(l.Separator)))
	}
	if n, most := len(list), len(l.Columns); n > most || n < l.least() {
		c.Reason = fmt.Sprintf("%d columns, where the layout has %d (%s)", n, most, rolesText(l.Columns))
		return c
	}
	for i, field := range list {
		switch l.Columns[i] {
		case Clip, ID, Path:
			c.Key = strings.TrimSpace(field)
		case Text, Rest:
			if field = clean(field); field != "" {
				c.Text = field
			}
		case Speaker:
			c.Speaker = strings.TrimSpace(field)
		case Language:
			c.Language = strings.TrimSpace(field)
		}
	}
	return c
}

// cutLoose reads a line of which the last column that is not empty is the text.
func cutLoose(line string, clean func(string) string) (c Line) {
	key, rest, ok := strings.Cut(line, "|")
	if !ok {
		c.Reason = "no '|' between id and text"
		return c
	}
	c.Key = strings.TrimSpace(key)
	for column := range strings.SplitSeq(rest, "|") {
		if column = clean(column); column != "" {
			c.Text = column
		}
	}
	return c
}

// least is the number of columns that a line needs: those to the last that is used. A normalized text may be missing.
func (l *Layout) least() int {
	texts := 0
	for _, r := range l.Columns {
		if r == Text {
			texts++
		}
	}
	for i := len(l.Columns) - 1; i >= 0; i-- {
		switch l.Columns[i] {
		case Unused:
		case Text:
			if texts--; texts == 0 {
				return i + 1
			}
		default:
			return i + 1
		}
	}
	return 0
}

func (r Role) keyName() string {
	switch r {
	case Clip:
		return "id"
	case Rest:
		return "text"
	case Unused:
		return "the next column"
	}
	return r.String()
}

func shown(sep byte) string {
	if sep == '\t' {
		return "tab"
	}
	return string(sep)
}

// HasPaths reports whether the clips are named by paths.
func (l *Layout) HasPaths() bool {
	for _, r := range l.Columns {
		if r == Path || r == Clip && l.Paths {
			return true
		}
	}
	return false
}

// audioEndings are those of paths of recordings, also of formats that are not read.
var audioEndings = map[string]bool{
	".wav": true, ".flac": true, ".ogg": true, ".oga": true, ".opus": true, ".mp3": true,
	".m4a": true, ".aac": true, ".mp4": true, ".webm": true, ".wma": true, ".aiff": true, ".aif": true,
}

// HasEnding reports whether a path ends as one of a recording does.
func HasEnding(name string) bool { return audioEndings[strings.ToLower(path.Ext(name))] }

// Audio returns the path at which a recording is looked for first, with an ending.
func (l *Layout) Audio(key string) string {
	if !HasEnding(key) || !l.HasPaths() {
		key += ".wav"
	}
	if path.IsAbs(key) {
		return key
	}
	return l.Base + key
}
