package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/page"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Speech is what an evaluation of a run has spoken.
type Speech struct {
	Step  int64 `json:"step"`
	Texts int   `json:"texts"`
	// Cut counts the texts that the model has not ended.
	Cut int `json:"cut"`
	// Measures are the means over the texts that have them, by their names; null for one that is no number.
	Measures map[string]report.Float `json:"measures"`

	spoken []string // what was spoken, sorted
}

// speechOf describes what was spoken. It is nil without a measure, as in runs that were made before there were any.
func speechOf(list []record.Utterance) *Speech {
	means := record.Means(list)
	if len(means) == 0 {
		return nil
	}
	s := &Speech{Step: list[0].Step, Texts: len(list), Measures: map[string]report.Float{}}
	for _, m := range means {
		s.Measures[m.Name] = report.Float(m.Value)
	}
	for i := range list {
		u := &list[i]
		if u.Ended != nil && !*u.Ended {
			s.Cut++
		}
		recording := "" // a sentence has the place in its list as its ID, and may be in another list, too
		if u.Clip {
			recording = u.ID
		}
		s.spoken = append(s.spoken, recording+"\x00"+u.Text+"\x00"+u.Language)
	}
	slices.Sort(s.spoken)
	return s
}

// speak takes the speech of the last evaluation that spoke, and of the best one.
func (r *Entry) speak(run *record.Run) {
	r.LastSpeech = speechOf(run.Spoken.End())
	if run.Best != nil {
		r.BestSpeech = speechOf(run.Spoken.At(run.Best.Step))
	}
}

// measures are those that all runs have.
func (r *Result) measures() (names []string) {
	first := r.Runs[0].LastSpeech
	if first == nil {
		return nil
	}
	for name := range first.Measures {
		if !slices.ContainsFunc(r.Runs, func(e Entry) bool { return !e.LastSpeech.has(name) }) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, measured.Compare)
	return names
}

// spoke says that there are measures of the speech of a run.
func (r *Result) spoke() bool {
	return slices.ContainsFunc(r.Runs, func(e Entry) bool { return e.LastSpeech != nil })
}

func (s *Speech) has(name string) bool {
	if s == nil {
		return false
	}
	_, ok := s.Measures[name]
	return ok
}

// speech adds the rows of the measures that all runs have: of the last evaluation that spoke, and of the best one if
// that is another one in a run.
func (t *rowsOf) speech() {
	names := t.measures()
	if len(names) == 0 {
		return
	}
	rows := func(title string, of func(r *Entry) *Speech) {
		add := func(name string, figure func(s *Speech) string) {
			t.add(name, func(r *Entry) string {
				if s := of(r); s != nil {
					return figure(s)
				}
				return "-"
			})
		}
		add(title, func(s *Speech) string { return units.Count(s.Texts, "text") })
		add("  at step", func(s *Speech) string { return page.Count(s.Step) })
		add("  cut", func(s *Speech) string { return page.Count(int64(s.Cut)) })
		for _, name := range names {
			m := measured.Of(name)
			add("  "+m.Title, func(s *Speech) string {
				if !s.has(name) {
					return "-"
				}
				return m.Figure(float64(s.Measures[name]))
			})
		}
	}
	rows("last speech", func(r *Entry) *Speech { return r.LastSpeech })
	other := func(r Entry) bool { return r.BestSpeech != nil && r.BestSpeech.Step != r.LastSpeech.Step }
	if slices.ContainsFunc(t.Runs, other) {
		rows("speech of the best", func(r *Entry) *Speech { return r.BestSpeech })
	}
}

// speechRemarks are why measures of speech are not comparable.
func (r *Result) speechRemarks() (list []Remark) {
	say := func(what string) { list = append(list, Remark{what, []string{"speech"}}) }
	var without []string
	for i := range r.Runs {
		if r.Runs[i].LastSpeech == nil {
			without = append(without, r.Runs[i].Letter)
		}
	}
	if len(without) > 0 {
		if r.spoke() {
			say("measures of speech are not compared: there are none of " + strings.Join(without, ", "))
		}
		return list
	}
	if text := r.otherTexts(); text != "" {
		say(text)
	}
	names := r.measures()
	if len(names) == 0 {
		say("the runs have no measure of speech in common")
	}
	if slices.Contains(names, measured.SpeakerSimilarity) {
		if text := differ(r.Runs, func(r *Entry) string { return r.Bundle }); text != "" {
			say("the speaker similarities are of the graphs of other bundles: " + text)
		}
	}
	if slices.Contains(names, measured.WER) || slices.Contains(names, measured.CER) {
		if text := differ(r.Runs, func(r *Entry) string { return r.recognizer }); text != "" {
			say("the recognizers of the error rates differ: " + text)
		}
	}
	return list
}

// otherTexts says which runs have spoken other texts than the first one, or at their best evaluation others than at
// the last one; "" if there are none.
func (r *Result) otherTexts() string {
	first := r.Runs[0].LastSpeech
	var parts []string
	for i := range r.Runs {
		e := &r.Runs[i]
		for _, s := range []*Speech{e.LastSpeech, e.BestSpeech} {
			if s == nil || slices.Equal(s.spoken, first.spoken) ||
				s == e.BestSpeech && slices.Equal(s.spoken, e.LastSpeech.spoken) {
				continue
			}
			parts = append(parts, fmt.Sprintf("%s %s at step %s, %d of them the same", e.Letter,
				units.Count(s.Texts, "text"), page.Count(s.Step), common(first.spoken, s.spoken)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the texts or clips that were spoken differ: A %s at step %s; %s",
		units.Count(first.Texts, "text"), page.Count(first.Step), strings.Join(parts, "; "))
}

// common counts what two sorted lists have in common.
func common(a, b []string) (n int) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			i, j, n = i+1, j+1, n+1
		}
	}
	return n
}
