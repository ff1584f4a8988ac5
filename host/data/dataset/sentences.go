package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// Sentence is a text that is to be spoken.
type Sentence struct {
	Place string // as "samples.txt:3"
	Text  string
	// Language and Voice are those of a line of JSON Lines; other lines have none.
	Language string
	Voice    *Row
}

// maxSentences bounds a file of sentences, in bytes.
const maxSentences = 1 << 20

// ReadSentences reads sentences. A file *.jsonl or *.json has the form of a list (docs/data.md), and the clip of a line
// is the voice for its text; clips may occur more than once. Any other file has a sentence in each line. It fails at
// the first line that cannot be used.
func ReadSentences(path string) ([]Sentence, error) {
	data, err := files.Read(path, maxSentences)
	if err != nil {
		return nil, err
	}
	if err := plain.CheckWide(path, data); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if layout.ObjectsName(path) && layout.IsArray(data) {
		return nil, layout.ErrArray(path)
	}
	var list []Sentence
	number := 0
	for line := range bytes.Lines(plain.Trim(data)) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		s := Sentence{Place: fmt.Sprintf("%s:%d", filepath.Base(path), number)}
		switch {
		case !utf8.Valid(line):
			return nil, hint.Errorf("if the file is in Latin-1, convert it: "+plain.Convert("LATIN1", path),
				"%s: the line is not UTF-8", s.Place)
		case layout.ObjectsName(path):
			err = s.parse(filepath.Dir(path), line)
		default:
			s.Text = string(line)
		}
		if err != nil {
			advice := cmp.Or(hint.Of(err),
				`each line is an object such as {"audio_filepath": "me.wav", "text": "One."}, and its recording is there`)
			return nil, hint.Errorf(advice, "%s: %w", s.Place, err)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, hint.Errorf("write a sentence in each line", "%s has no sentence", filepath.Base(path))
	}
	return list, nil
}

// parse reads a line of JSON Lines, and the header of its recording.
func (s *Sentence) parse(dir string, line []byte) error {
	e, err := parseObject(dir, &layout.Layout{Kind: layout.Objects, Keys: layout.Standard}, Train, nil)(line)
	if err != nil || e.reason != "" {
		return cmp.Or(err, errors.New(e.reason))
	}
	path := filepath.FromSlash(e.audio)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	s.Text, s.Language = e.text, cmp.Or(e.language, "en")
	if s.Voice, err = openRecording(path); err != nil {
		return fmt.Errorf("%s: %s", e.audio, reasonOf(err))
	}
	s.Voice.Offset, s.Voice.Frames, err = e.part.frames(s.Voice.Frames, s.Voice.FileRate)
	return err
}
