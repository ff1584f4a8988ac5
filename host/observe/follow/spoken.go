package follow

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

const (
	maxTakes = 20_000 // texts that were spoken, each with every evaluation counted
	maxTexts = 400    // texts that are told apart
	maxText  = 2000   // bytes of one

	maxMeasures = 16 // of a take
)

// speech is what spoken.jsonl has.
type speech struct {
	texts []Text
	index map[textKey]int // in texts
	takes []take
	steps []int64 // of evaluations that spoke
	left  int     // takes that are left out
}

type textKey struct {
	clip   bool
	number int
}

// Text is one that evaluations have spoken.
type Text struct {
	Clip           bool // of the validation data, otherwise a sentence of --samples
	Number         int
	ID             string
	Text, Language string
	Reference      string // the true recording, a path in the run folder; "" without one
}

// take is a text as one evaluation has spoken it.
type take struct {
	text          int // in texts
	step          int64
	file, picture string
	seconds       float32
	cut           bool
	measures      []record.Value
}

func (s *speech) take(line []byte) error {
	u, _, err := record.ReadUtterance(line)
	if err != nil {
		return err
	}
	last := len(s.steps) - 1
	if last >= 0 && u.Step < s.steps[last] {
		return record.ErrOrder
	}
	key := textKey{u.Clip, u.Number}
	at, ok := s.index[key]
	if !ok && len(s.texts) == maxTexts || len(s.takes) == maxTakes {
		s.left++
		return nil
	}
	if !ok {
		if s.index == nil {
			s.index = map[textKey]int{}
		}
		at = len(s.texts)
		s.index[key] = at
		s.texts = append(s.texts, Text{
			u.Clip, u.Number, visible.Short(u.ID, maxText), visible.Short(u.Text, maxText),
			visible.Short(u.Language, maxName), u.Reference,
		})
	}
	if last < 0 || u.Step != s.steps[last] {
		s.steps = append(s.steps, u.Step)
	}
	u.Measures = u.Measures[:min(len(u.Measures), maxMeasures)]
	for i := range u.Measures {
		u.Measures[i].Name = visible.Short(u.Measures[i].Name, maxName)
	}
	s.takes = append(s.takes, take{
		at, u.Step, u.File, u.Picture, float32(u.Seconds), u.Ended != nil && !*u.Ended, u.Measures,
	})
	return nil
}

// at returns the takes of an evaluation.
func (s *speech) at(step int64) []take {
	from, _ := slices.BinarySearchFunc(s.takes, step, func(t take, step int64) int { return int(t.step - step) })
	to := from
	for to < len(s.takes) && s.takes[to].step == step {
		to++
	}
	return s.takes[from:to]
}

// means returns the means of the measures at each evaluation, by measure.
func (s *speech) means(from, to int64, most int) []Series {
	c := curves{most: 4096}
	for _, step := range s.steps {
		var texts []record.Utterance
		for _, t := range s.at(step) {
			texts = append(texts, record.Utterance{Measures: t.measures})
		}
		for _, m := range record.Means(texts) {
			c.add([]byte(m.Name), step, m.Value)
		}
	}
	list := c.within(from, to, most)
	slices.SortFunc(list, func(a, b Series) int { return measured.Compare(a.Name, b.Name) })
	return list
}

// Texts returns what was spoken, the steps of the evaluations that spoke, and the number of takes that are left out
// because there are too many.
func (r *Run) Texts() (texts []Text, steps []int64, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.speech.texts), slices.Clone(r.speech.steps), r.speech.left
}

// Take is a text as one evaluation has spoken it. File and Picture are paths in the run folder, "" if there is none.
type Take struct {
	Text          int // in Texts
	File, Picture string
	Seconds       float64
	Cut           bool // the model did not end it
	Measures      []record.Value
}

// Takes returns what the evaluation of a step has spoken. The caller must not change the measures.
func (r *Run) Takes(step int64) (list []Take) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.speech.at(step) {
		list = append(list, Take{t.text, t.file, t.picture, float64(t.seconds), t.cut, t.measures})
	}
	return list
}
