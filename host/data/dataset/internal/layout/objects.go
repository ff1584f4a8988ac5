package layout

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// objects decides under which keys the objects of a list have their clips. The keys of docs/data.md come first.
func (s *Source) objects(asked *Layout) (*Decision, error) {
	d := &Decision{Layout: Layout{Kind: Objects, Name: "jsonl", Keys: Standard}, AsBefore: true}
	cr, e, err := s.lineEnds(asked != nil && asked.Name == d.Name,
		func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "{") })
	if err != nil {
		return nil, err
	}
	d.Lines, d.CR = e.feeds+e.returns, cr
	split := bufio.SplitFunc(bufio.ScanLines)
	if cr {
		d.AsBefore = false
		d.Remarks = append(d.Remarks, "lines end in a carriage return alone")
		split = records{cr: true}.split
	}
	if asked != nil {
		d.Name, d.Keys, d.AsBefore = asked.Name, asked.Keys, d.AsBefore && asked.Keys == Standard
		s.objectBase(d, split)
		return d, nil
	}
	var names []string // of the first lines, in their order
	standard, lines := 0, 0
	var first map[string]json.RawMessage
	different, other := 0, "" // the first line whose normalized text is another, and that text
	err = s.scan(split, func(number int, line []byte) bool {
		if lines++; lines <= 100 {
			var o map[string]json.RawMessage
			if json.Unmarshal(line, &o) != nil {
				return true
			}
			if first == nil {
				first = o
			}
			if o[Standard.Audio] != nil && o[Standard.Text] != nil {
				standard++
			}
			for key := range o {
				if !slices.Contains(names, key) {
					names = append(names, key)
				}
			}
		}
		if different == 0 && bytes.Contains(line, []byte(`"normalized_text"`)) {
			if other = normalizedText(line); other != "" {
				different = number
			}
		}
		return lines < 100 || different == 0
	})
	if err != nil {
		return nil, err
	}
	switch {
	case standard > 0 && different > 0:
		return nil, s.whichText(d, split, different, "text", "normalized_text")
	case standard > 0 || len(names) == 0:
		return d, nil
	}
	return d, s.byKeys(d, names, first, split)
}

// normalizedText returns the normalized text of an object if it differs from the text.
func normalizedText(line []byte) string {
	var o struct {
		Text       string `json:"text"`
		Normalized string `json:"normalized_text"`
	}
	if json.Unmarshal(line, &o) != nil || o.Normalized == o.Text {
		return ""
	}
	return o.Normalized
}

// byKeys takes other keys than the standard ones, if each is clear.
func (s *Source) byKeys(d *Decision, names []string, first map[string]json.RawMessage, split bufio.SplitFunc) error {
	slices.Sort(names)
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i] = plainName(n)
	}
	m := meaningOf(plain)
	if m.text < 0 {
		m.text, m.normal = m.normal, -1
	}
	if m.key < 0 || m.text < 0 || m.keyRole != Path {
		return nil // the lines are refused one by one, with what is missing
	}
	keys := Keys{names[m.key], names[m.text], Standard.Speaker, Standard.Language}
	if m.speaker >= 0 {
		keys.Speaker = names[m.speaker]
	}
	if m.language >= 0 {
		keys.Language = names[m.language]
	}
	if keys == Standard { // no object has all of them: the lines are refused one by one
		return nil
	}
	d.Name, d.Keys, d.AsBefore = "", keys, false
	if m.normal >= 0 || m.texts > 1 {
		other := m.normal
		for i, n := range plain {
			if other < 0 && i != m.text && slices.Contains(textNames, n) {
				other = i
			}
		}
		return s.whichText(d, split, 1, names[m.text], names[other])
	}
	s.objectBase(d, split)
	return nil
}

// objectBase finds the folder of the recordings, and whether paths begin with splits.
func (s *Source) objectBase(d *Decision, split bufio.SplitFunc) {
	if d.Keys == Standard {
		return
	}
	var paths []string
	_ = s.scan(split, func(_ int, line []byte) bool {
		var o map[string]any
		if json.Unmarshal(line, &o) == nil {
			if path, _ := o[d.Keys.Audio].(string); path != "" {
				paths = append(paths, path)
			}
		}
		return len(paths) < 64
	})
	d.Base, _ = s.place(paths, true)
	d.splits(paths)
}

// whichText asks which of two texts of an object is meant.
func (s *Source) whichText(d *Decision, split bufio.SplitFunc, number int, a, b string) error {
	q := &Question{List: s.List, Flag: s.Flag, Why: "its objects have two texts", Line: number}
	var line string
	_ = s.scan(split, func(at int, text []byte) bool {
		line = string(text)
		return at < number
	})
	var o map[string]any
	_ = json.Unmarshal([]byte(line), &o)
	q.Example = brief(line)
	for i, key := range []string{a, b} {
		l := d.Layout
		l.Name, l.Keys.Text = "", key
		switch {
		case l.Keys == Standard:
			l.Name = "jsonl"
		case key == "normalized_text" && l.Keys.Audio == Standard.Audio && l.Keys.Speaker == Standard.Speaker:
			l.Name = "nemo"
		}
		value, _ := o[key].(string)
		q.Readings[i] = Reading{l, "text " + brief(value)}
	}
	return q
}
