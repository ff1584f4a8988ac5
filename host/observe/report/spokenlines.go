package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// SpokenLine is a line of spoken.jsonl: a text that an evaluation has spoken. docs/report.md has its keys.
type SpokenLine struct {
	Step      int64              `json:"step"`
	Clip      int                `json:"clip,omitempty"`
	Sample    int                `json:"sample,omitempty"`
	ID        string             `json:"id"`
	Text      string             `json:"text"`
	Language  string             `json:"language,omitempty"`
	File      string             `json:"file"`
	Reference string             `json:"reference,omitempty"`
	Picture   string             `json:"picture,omitempty"`
	Seconds   float64            `json:"seconds"`
	Ended     bool               `json:"ended"`
	Measures  map[string]float64 `json:"measures"`
}

// SpokenLineOf is the line of an utterance.
func SpokenLineOf(step int64, u event.Utterance) SpokenLine {
	l := SpokenLine{
		Step: step, Sample: u.Number, ID: u.ID, Text: u.Text, Language: u.Language, File: u.File,
		Reference: u.Reference, Picture: u.Picture, Seconds: u.Seconds, Ended: u.Ended, Measures: map[string]float64{},
	}
	if u.Clip {
		l.Clip, l.Sample = u.Number, 0
	}
	for _, m := range u.Measures {
		l.Measures[m.Name] = m.Value
	}
	return l
}

// Utterance is what the line says, with measures by their names.
func (l SpokenLine) Utterance() event.Utterance {
	u := event.Utterance{
		Clip: l.Clip > 0, Number: max(l.Clip, l.Sample), ID: l.ID, Text: l.Text, Language: l.Language, File: l.File,
		Reference: l.Reference, Picture: l.Picture, Seconds: l.Seconds, Ended: l.Ended,
	}
	for _, name := range slices.Sorted(maps.Keys(l.Measures)) {
		u.Measures = append(u.Measures, event.Value{Name: name, Value: l.Measures[name]})
	}
	return u
}

// SpokenLines writes spoken.jsonl. It does not wait for a disk: speech does not end a run.
type SpokenLines struct {
	lines   *lines
	kept    []SpokenLine
	problem string
}

// OpenSpoken opens or creates spoken.jsonl, and removes the lines after a step, as OpenMetrics does. It leaves out
// those that cannot be read.
func OpenSpoken(path string, afterStep int64) (*SpokenLines, error) {
	s := new(SpokenLines)
	var err error
	s.lines, s.problem, err = salvageLines(path, maxLine, afterStep, func(l SpokenLine) error {
		if (l.Clip > 0) == (l.Sample > 0) {
			return errors.New("it is of neither a clip nor a sample")
		}
		s.kept = append(s.kept, l)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open the lines about speech: %w", err)
	}
	return s, nil
}

// Problem says which lines were left out when the file was opened; empty without one.
func (s *SpokenLines) Problem() string { return s.problem }

// Kept returns the lines that stayed when the file was opened.
func (s *SpokenLines) Kept() []SpokenLine { return s.kept }

// Write appends a line.
func (s *SpokenLines) Write(l SpokenLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	s.lines.buf = append(append(s.lines.buf[:0], text...), '\n')
	return s.lines.write()
}

// Sync makes the lines durable.
func (s *SpokenLines) Sync() error { return s.lines.sync() }

// Close closes the file. It is idempotent.
func (s *SpokenLines) Close() error {
	if s == nil {
		return nil
	}
	return s.lines.close()
}
