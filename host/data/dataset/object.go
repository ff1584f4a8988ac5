package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// object is the values of the known keys of a JSON object; nil if a key is missing or null, as Python writes None. The
// values are parts of the line.
type object struct {
	keys    *[len(keys)]string // nil for those of any list
	values  [len(keys)]json.RawMessage
	columns *Columns
	own     []json.RawMessage // of the columns
	ignored []string          // the other keys
}

// keys are those that a line of any list may have.
var keys = [...]string{
	audioKey: "audio_filepath", textKey: "text", idKey: "id", speakerKey: "speaker", languageKey: "language",
	offsetKey: "offset", durationKey: "duration",
}

const (
	audioKey = iota
	textKey
	idKey
	speakerKey
	languageKey
	offsetKey
	durationKey
)

// names returns the keys of the list.
func (o *object) names() *[len(keys)]string {
	if o.keys != nil {
		return o.keys
	}
	return &keys
}

// errNotObject means that a line is JSON, but not an object.
var errNotObject = errors.New("not a JSON object")

// parse reads a line. If a key occurs twice, the last one counts.
func (o *object) parse(line []byte) error {
	if !json.Valid(line) {
		return json.Unmarshal(line, new(any))
	}
	line = bytes.TrimLeft(line, spaces)
	if line[0] != '{' {
		return errNotObject
	}
	rest := bytes.TrimLeft(line[1:], spaces)
	for rest[0] != '}' {
		key, after := cutValue(rest)
		value, after := cutValue(bytes.TrimLeft(after, spaces+":"))
		if string(value) == "null" {
			value = nil
		}
		o.set(key, value)
		rest = bytes.TrimLeft(after, spaces+",")
	}
	return nil
}

const spaces = " \t\r\n"

// set keeps the value of a key that is known, or that is a column's, and the name of any other.
func (o *object) set(key, value json.RawMessage) {
	name := key[1 : len(key)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		plain, err := unquote(key)
		if err != nil {
			return
		}
		name = []byte(plain)
	}
	isKnown := false
	for i := range o.own {
		if string(name) == o.columns.all[i].spec.Column {
			o.own[i], isKnown = value, true
		}
	}
	for i, known := range o.names() {
		if string(name) == known {
			o.values[i], isKnown = value, true
		}
	}
	if !isKnown {
		o.ignored = append(o.ignored, string(name))
	}
}

// missing returns the error that the line does not have a key. It names a key of the line that is likely to be this
// one, misspelt.
func (o *object) missing(key string) error {
	likely := ""
	for _, name := range o.ignored {
		// audio rather than audio_rate
		if (likely == "" || len(name) < len(likely)) && meant(name, []string{key}) != "" {
			likely = name
		}
	}
	if likely == "" {
		return fmt.Errorf("%s is missing", key)
	}
	return fmt.Errorf("%s is missing; the line has %s, which is ignored", key, brief(strconv.Quote(likely)))
}

// absent returns speaker and language, as far as the line lacks them.
func (o *object) absent() (names []string) {
	for _, key := range []int{speakerKey, languageKey} {
		if o.values[key] == nil {
			names = append(names, o.names()[key])
		}
	}
	return names
}

// cutValue cuts the first value off valid JSON.
func cutValue(b []byte) (value json.RawMessage, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return b[:i+1], b[i+1:]
			}
		case '{', '[':
			depth++
		case '}', ']', ',', ' ', '\t', '\r', '\n':
			closes := b[i] == '}' || b[i] == ']'
			if depth == 0 {
				return b[:i], b[i:] // the end of a number or a word
			}
			if !closes {
				continue
			}
			if depth--; depth == 0 {
				return b[:i+1], b[i+1:]
			}
		}
	}
	return b, nil
}

// unquote returns the string of a JSON value that is one.
func unquote(v json.RawMessage) (s string, err error) {
	if bytes.IndexByte(v, '\\') < 0 && v[0] == '"' {
		return string(v[1 : len(v)-1]), nil
	}
	err = json.Unmarshal(v, &s)
	return s, err
}
