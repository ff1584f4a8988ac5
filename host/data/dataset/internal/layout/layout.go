package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Kind is the form of a list.
type Kind uint8

// A tree has no list: its texts are in many files.
const (
	Table   Kind = iota // lines of columns
	Objects             // lines of JSON
	Tree
)

// LastColumn is how version 75a547d6 and older read all tables.
const LastColumn = "last-column"

// Auto asks for a layout to be recognised.
const Auto = "auto"

// Layout says how a list is read.
type Layout struct {
	Name      string // as --list-layout takes it; "" for a description of columns or keys
	Kind      Kind
	Columns   []Role // of a table
	Loose     bool   // a table whose text is the last column that is not empty, however many there are
	Separator byte   // between columns; 0 before the list has been read
	Quotes    Choice // fields follow the quoting of CSV (RFC 4180)
	Header    Choice // the first line has the names of the columns
	Keys      Keys   // of objects
	Language  string // of all texts, if the layout has it
	// What the list shows, and no name says:
	CR     bool   // a carriage return alone ends a line, too
	Paths  bool   // the column Clip has paths, not ids
	Base   string // folder of the recordings with a slash at its end, from that of the list
	Splits bool   // the first folder of the paths is a split
}

// Choice is yes, no, or what the list shows.
type Choice uint8

// The values of Choice.
const (
	Open Choice = iota
	Yes
	No
)

func choice(yes bool) Choice {
	if yes {
		return Yes
	}
	return No
}

// named are the layouts with a name, in the order of the documentation. The first whose columns fit gives its name to a
// list that is recognised.
var named = []Layout{
	{Name: "ljspeech", Columns: []Role{Clip, Text, Text}},
	{Name: "css10", Columns: []Role{Clip, Text, Text, Unused}},
	{Name: "thorsten", Columns: []Role{Clip, Text, Unused}},
	{Name: "kss", Columns: []Role{Clip, Text, Text, Unused, Unused, Unused}, Language: "ko"},
	{Name: "coqui", Columns: []Role{Clip, Text, Speaker}},
	{Name: "styletts2", Columns: []Role{Clip, Text, Speaker}},
	{Name: "piper", Columns: []Role{Clip, Speaker, Text}},
	{Name: "gpt-sovits", Columns: []Role{Clip, Speaker, Language, Text}},
	{Name: "mozilla", Columns: []Role{Text, Clip}},
	{Name: LastColumn, Columns: []Role{ID, Text}, Loose: true, Quotes: No, Separator: '|', Header: No, Base: "wavs/"},
	{Name: "header", Header: Yes},
	{Name: "common-voice", Header: Yes, Separator: '\t'},
	{Name: "audiofolder", Header: Yes},
	{Name: "jsonl", Kind: Objects, Keys: Standard},
	{Name: "nemo", Kind: Objects, Keys: Keys{
		Audio: Standard.Audio, Text: "normalized_text", Speaker: Standard.Speaker, Language: Standard.Language,
	}},
	{Name: VCTK, Kind: Tree}, {Name: LibriTTS, Kind: Tree}, {Name: LibriSpeech, Kind: Tree},
	{Name: MAILABS, Kind: Tree},
}

// Names returns what --list-layout accepts beside descriptions.
func Names() []string {
	names := []string{Auto}
	for _, l := range named {
		names = append(names, l.Name)
	}
	return names
}

func byName(name string) (Layout, bool) {
	i := slices.IndexFunc(named, func(l Layout) bool { return l.Name == name })
	if i < 0 {
		return Layout{}, false
	}
	l := named[i]
	l.Columns = slices.Clone(l.Columns)
	return l, true
}

const examples = "for example coqui, columns=id,text,speaker or keys=audio:file,text:sentence (docs/data.md#layouts)"

// Parse reads the value of --list-layout: a name, a description of columns or of keys, with options after semicolons.
// nil means auto.
func Parse(text string) (*Layout, error) {
	parts := splitOptions(text)
	var l Layout
	var err error
	what, list, described := strings.Cut(parts[0], "=")
	switch {
	case text == "" || text == Auto:
		return nil, nil
	case described && what == "columns":
		l.Columns, err = parseRoles(list)
		l.Loose = false
		l.Header, l.Quotes = No, No
	case described && what == "keys":
		l.Kind = Objects
		l.Keys, err = parseKeys(list)
	default:
		var ok bool
		if l, ok = byName(parts[0]); !ok {
			err = hint.Errorf(nearest(parts[0]), "there is no layout %q", parts[0])
		}
	}
	for _, option := range parts[1:] {
		if err == nil {
			err = l.option(option)
		}
	}
	if err != nil {
		return nil, err
	}
	return &l, nil
}

func nearest(name string) string {
	if near := hint.DidYouMean(name, Names()); near != "" {
		return near
	}
	return examples
}

// splitOptions splits at semicolons. "separator=;" has one as its value.
func splitOptions(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ";") {
		if n := len(parts); part == "" && n > 0 && parts[n-1] == "separator=" {
			parts[n-1] += ";"
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// option reads "separator=tab", "quotes=csv" or "header=yes".
func (l *Layout) option(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if l.Kind != Table {
		return hint.Errorf("leave it out", "the option %q is for lists of columns", text)
	}
	switch name {
	case "separator":
		if at := slices.Index(separatorNames, value); at >= 0 {
			l.Separator = separators[at]
			return nil
		}
		return hint.Errorf("write separator=|, or tab, comma, semicolon, colon or space", "separator %q", value)
	case "quotes":
		if value == "csv" || value == "none" {
			l.Quotes = choice(value == "csv")
			return nil
		}
		return hint.Errorf("write quotes=csv or quotes=none", "quotes %q", value)
	case "header":
		if value == "yes" || value == "no" {
			l.Header = choice(value == "yes")
			return nil
		}
		return hint.Errorf("write header=yes or header=no", "header %q", value)
	}
	return hint.Errorf("the options are separator, quotes and header, after a semicolon each", "there is no option %q",
		text)
}

var (
	separators     = []byte{'|', '\t', ',', ';', ':', ' ', '|', ',', ';', ':'}
	separatorNames = []string{"|", "tab", "comma", "semicolon", "colon", "space", "bar", ",", ";", ":"}
)

func separatorName(sep byte) string { return separatorNames[slices.Index(separators, sep)] }

// String returns the text from which Parse makes the layout again.
func (l *Layout) String() string {
	if l.Kind == Objects && l.Name == "" {
		return "keys=" + l.Keys.String()
	}
	if l.Kind != Table {
		return l.Name
	}
	text, plain := l.Name, Layout{Separator: '|', Quotes: No, Header: No}
	if text == "" {
		text = "columns=" + rolesText(l.Columns)
	} else {
		plain.Header = l.Header // a name leaves it to the list
		if own, _ := byName(l.Name); own.Header == Yes {
			plain.Separator, plain.Quotes = l.Separator, l.Quotes
		}
	}
	if l.Separator != plain.Separator && l.Separator != 0 {
		text += ";separator=" + separatorName(l.Separator)
	}
	if l.Quotes == Yes && plain.Quotes != Yes {
		text += ";quotes=csv"
	}
	if l.Header == Yes && plain.Header != Yes {
		text += ";header=yes"
	}
	return text
}

// Describe says in words how the list is read.
func (l *Layout) Describe() string {
	name := l.Name
	if name == "" {
		name = "its own"
	}
	switch l.Kind {
	case Tree:
		return name
	case Objects:
		if l.Keys.Audio == "file_name" {
			name = "audiofolder"
		}
		return fmt.Sprintf("%s: the recording is %q, the text %q", name, l.Keys.Audio, l.Keys.Text)
	}
	columns := rolesText(l.Columns)
	if l.Loose {
		columns = "id, and the text in the last column"
	}
	text := fmt.Sprintf("%s: columns %s", name, strings.ReplaceAll(columns, ",", ", "))
	if l.Separator != '|' {
		text += ", separated by " + separatorName(l.Separator)
	}
	if l.Header == Yes {
		text += ", named in the first line"
	}
	if l.Quotes == Yes {
		text += ", quoted as CSV"
	}
	return text
}
