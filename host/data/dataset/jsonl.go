package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

// parseObject returns the parser for JSON Lines, with the values of columns: a line is an object in the form of NVIDIA
// NeMo's manifests (https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/asr/datasets.html). It ignores
// unknown keys, but an entry has their names for messages. Paths are relative to dir, the folder of the list.
//
// No line can make the list ambiguous, so the parser returns no error.
func parseObject(dir string, l *layout.Layout, split Split, columns *Columns) parser {
	names := keysOf(l)
	return func(line []byte) (entry, error) {
		o := object{columns: columns, keys: names}
		if columns != nil {
			o.own = make([]json.RawMessage, len(columns.all))
		}
		if err := o.parse(line); err != nil {
			return entry{reason: notObject(line, err)}, nil
		}
		e := o.entry(dir)
		if l.Base != "" && !filepath.IsAbs(e.audio) && e.audio != "" {
			e.audio = l.Base + e.audio
		}
		e.any = names != nil
		e.skip = l.Splits && !layout.InSplit(e.audio, split == Eval)
		return e, nil
	}
}

// keysOf returns the keys of a list, nil for the usual ones.
func keysOf(l *layout.Layout) *[len(keys)]string {
	if l.Keys == layout.Standard {
		return nil
	}
	own := keys
	own[audioKey], own[textKey], own[speakerKey], own[languageKey] = l.Keys.Audio, l.Keys.Text, l.Keys.Speaker,
		l.Keys.Language
	return &own
}

// notObject returns why a line is not a JSON object.
func notObject(line []byte, err error) string {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		for _, word := range []string{"NaN", "Infinity"} { // Python writes them
			if bytes.HasPrefix(line[max(0, syntax.Offset-1):], []byte(word)) {
				return fmt.Sprintf("not JSON: byte %d: %s is not a JSON number", syntax.Offset, word)
			}
		}
		return fmt.Sprintf("not JSON: byte %d: %v", syntax.Offset, err)
	}
	if bytes.HasPrefix(bytes.TrimLeft(line, spaces), []byte("[")) {
		return errNotObject.Error() + ", but an array: a list has one object on each line"
	}
	return errNotObject.Error()
}

func (o *object) entry(dir string) entry {
	var e entry
	var errs [6]error
	e.audio, errs[0] = o.required(audioKey)
	e.part, errs[1] = o.part()
	e.id, errs[2] = o.text(idKey)
	e.text, errs[3] = o.required(textKey)
	e.speaker, errs[4] = o.speaker()
	e.language, errs[5] = o.text(languageKey)
	if len(o.ignored) > 0 {
		e.ignored = &ignored{o.ignored, o.absent()}
	}
	e.text = normalize(e.text)
	e.audio = insideOf(dir, e.audio)
	if e.id == "" && e.audio != "" && errs[1] == nil && errs[2] == nil {
		e.id = e.audio + e.part.String()
	}
	if len(e.id) > MaxID {
		e.reason, e.id = longID(e.id), ""
		return e
	}
	for _, err := range errs {
		if err != nil {
			e.reason = err.Error()
			return e
		}
	}
	// Messages contain paths and names. A control character in them would change the reader's terminal.
	for _, v := range [...]struct{ key, value string }{
		{o.names()[audioKey], e.audio}, {"id", e.id}, {"speaker", e.speaker}, {"language", e.language},
	} {
		if hasControl(v.value) {
			e.reason = fmt.Sprintf("%s %s has a control character", v.key, brief(strconv.Quote(v.value)))
			return e
		}
	}
	switch {
	case e.audio == "":
		e.reason = o.names()[audioKey] + " is empty"
	case e.text == "":
		e.reason = "the text is empty"
	case o.columns != nil:
		var err error
		if e.values, err = o.columns.values(dir, o); err != nil {
			e.reason = reasonOf(err)
		}
	}
	return e
}

// brief shortens a value of a line for a message, because it may be nearly as long as the line.
func brief(value string) string {
	const most = 80
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "..."
}

// insideOf cleans a path. A path below the list's folder becomes relative to it, so ids stay the same when the folder
// moves.
func insideOf(dir, path string) string {
	if path == "" {
		return ""
	}
	path = filepath.Clean(filepath.FromSlash(path))
	if filepath.IsAbs(path) {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}

func (o *object) required(key int) (string, error) {
	if o.values[key] == nil {
		return "", o.missing(o.names()[key])
	}
	return o.text(key)
}

func (o *object) text(key int) (string, error) {
	v := o.values[key]
	if v == nil {
		return "", nil
	}
	s, err := unquote(v)
	if err != nil {
		return "", fmt.Errorf("%s is %s, not a string", o.names()[key], kind(v))
	}
	return strings.TrimSpace(s), nil
}

// speaker also accepts an integer, which manifests with several speakers often have.
func (o *object) speaker() (string, error) {
	if v := o.values[speakerKey]; v != nil && v[0] != '"' {
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return o.text(speakerKey)
}

func (o *object) part() (p part, err error) {
	offset, has, err := o.seconds(offsetKey)
	if err != nil {
		return part{}, err
	}
	p.offset, p.given = offset, has
	if p.duration, p.bounded, err = o.seconds(durationKey); err != nil {
		return part{}, err
	}
	p.given = p.given || p.bounded
	if p.bounded {
		p.slack = lastDigit(o.values[durationKey])
		if p.offset > 0 {
			p.slack += lastDigit(o.values[offsetKey])
		}
		p.slack = min(p.slack, mostSlack)
	}
	return p, nil
}

func (o *object) seconds(at int) (s float64, has bool, err error) {
	key, v := o.names()[at], o.values[at]
	if v == nil {
		return 0, false, nil
	}
	if c := v[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false, fmt.Errorf("%s is %s, not a number of seconds", key, kind(v))
	}
	s, err = strconv.ParseFloat(string(v), 64)
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("%s %s is out of range", key, brief(string(v)))
	case s < 0:
		return 0, false, fmt.Errorf("%s %s is negative", key, brief(string(v)))
	}
	return s, true, nil
}

// kind names the type of a JSON value.
func kind(v json.RawMessage) string {
	switch v[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// part is the part of a recording that is the clip, in seconds. The zero value is the whole recording.
type part struct {
	offset, duration float64
	bounded          bool // bounded by duration
	given            bool
	slack            float64 // how far it may extend past the end of the recording, in seconds
}

// String identifies the part in an id: "@offset+duration", with the fewest digits that represent the numbers exactly.
// It differs between two parts of one recording.
func (p part) String() string {
	if !p.given {
		return ""
	}
	text := "@" + strconv.FormatFloat(p.offset, 'f', -1, 64)
	if p.bounded {
		text += "+" + strconv.FormatFloat(p.duration, 'f', -1, 64)
	}
	return text
}

// How far a part may extend past the end of the recording, in seconds: a last digit of what is written, as durations
// are rounded, also up; at least as much as two decimals have, and at most as much as a whole second is rounded by.
const (
	leastSlack = 0.01
	mostSlack  = 0.5
)

// lastDigit is the value of the last digit of a number as it is written: 0.1 for 3.0.
func lastDigit(number json.RawMessage) float64 {
	_, decimals, _ := bytes.Cut(number, []byte("."))
	if bytes.ContainsAny(number, "eE") {
		return leastSlack
	}
	return math.Pow10(-len(decimals))
}

// frames returns the part in frames of a recording. It starts at the frame nearest to offset and ends before the frame
// nearest to offset+duration, with halves rounded away from 0. So consecutive parts neither overlap nor leave a gap.
func (p part) frames(recording, rate int) (first, n int, err error) {
	length := float64(recording) / float64(rate)
	begin, end := math.Round(p.offset*float64(rate)), float64(recording)
	if begin >= end {
		return 0, 0, fmt.Errorf("offset %g s is not inside the recording of %.3f s", p.offset, length)
	}
	if p.bounded {
		stop := p.offset + p.duration
		if stop > length+max(p.slack, leastSlack) {
			return 0, 0, fmt.Errorf("offset %g s and duration %g s end after the recording of %.3f s; leave duration "+
				"out to take it to its end",
				p.offset, p.duration, length)
		}
		end = min(end, math.Round(stop*float64(rate)))
	}
	if end <= begin {
		return 0, 0, fmt.Errorf("a duration of %g s contains no sample at %d Hz", p.duration, rate)
	}
	return int(begin), int(end - begin), nil
}
