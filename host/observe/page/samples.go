package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

// mostTexts bounds the texts on a page.
const mostTexts = 40

// Text is a text with what was spoken of it.
type Text struct {
	Text, ID, Language string
	Name               string // "clip 1", "sentence 3"
	Reference          *Medium
	Takes              []Take
}

// Take is a text as the weights of an evaluation spoke it.
type Take struct {
	When     string // "step 30, the first"
	Sound    *Medium
	Picture  *Medium
	Seconds  float64
	Timed    bool // Seconds is known
	NotEnded bool
	Measures []Measure
}

// Measure is a figure of what was spoken.
type Measure struct{ Name, Value string }

// Samples are the texts of the first, the best and the last evaluation.
type Samples struct {
	Texts []Text
	Steps []string
	Means *Table // a row for each measure, a cell for each evaluation of Steps; nil without measures
	// Curves are the measures over all evaluations.
	Curves []Figure
	More   int // texts that are left out
	// Linked counts the files that are links, because they did not fit.
	Linked      int
	Evaluations int
}

// pictures and sounds of an evaluation, in the order in which they get room in the page.
type set struct {
	when       string
	utterances []record.Utterance
	rank       int
}

// SamplesOf takes the samples of a run into a page. link leads from the page to the run folder.
func SamplesOf(run *record.Run, media *Media, link string) *Samples {
	s := &Samples{Evaluations: run.Spoken.Evaluations}
	sets := setsOf(run)
	at := map[key]int{}
	for _, set := range sets {
		s.Steps = append(s.Steps, set.when)
		for _, u := range set.utterances {
			k := key{u.Clip, u.Number}
			if _, ok := at[k]; ok {
				continue
			}
			if len(s.Texts) == mostTexts {
				s.More++
				continue
			}
			at[k] = len(s.Texts)
			s.Texts = append(s.Texts, Text{Name: NameOf(&u), Text: u.Text, ID: u.ID, Language: u.Language,
				Takes: make([]Take, len(sets))})
		}
	}
	before := media.Linked
	s.sounds(run, sets, at, media, link)
	s.Linked = media.Linked - before
	for i := range s.Texts {
		s.Texts[i].Takes = slices.DeleteFunc(s.Texts[i].Takes, func(t Take) bool { return t.When == "" })
	}
	slices.SortStableFunc(s.Texts, func(a, b Text) int { return -cmp.Compare(len(a.Takes), len(b.Takes)) })
	s.Means, s.Curves = means(sets, s.Steps), speechCurves(&run.Spoken)
	return s
}

type key struct {
	clip   bool
	number int
}

// NameOf says which text an utterance is.
func NameOf(u *record.Utterance) string {
	if u.Clip {
		return fmt.Sprintf("clip %d", u.Number)
	}
	return fmt.Sprintf("sentence %d", u.Number)
}

// TakeOf is an utterance without its picture.
func TakeOf(u *record.Utterance, when, folder, link string, media *Media) Take {
	return Take{
		When: when, Sound: media.Take(folder, u.File, link), Seconds: u.Seconds, Timed: u.Seconds > 0 || u.Ended != nil,
		NotEnded: u.Ended != nil && !*u.Ended, Measures: measures(u.Measures),
	}
}

// setsOf names the evaluations in the order of their steps.
func setsOf(run *record.Run) []set {
	best := int64(-1)
	if run.Best != nil {
		best = run.Best.Step
	}
	var sets []set
	for i, list := range [][]record.Utterance{run.Spoken.First, run.Spoken.Best, run.Spoken.Last} {
		if len(list) == 0 {
			continue
		}
		step := list[0].Step
		var words []string
		if i == 0 {
			words = append(words, "first")
		}
		if step == best {
			words = append(words, "best")
		}
		if i == 2 || i == 0 && run.Spoken.Last == nil {
			words = append(words, "last")
		}
		rank := [3]int{2, 1, 0}[i] // the last is taken first
		sets = append(sets, set{"step\u00a0" + Count(step) + " (" + strings.Join(words, ", ") + ")", list, rank})
	}
	slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(a.utterances[0].Step, b.utterances[0].Step) })
	return sets
}

// sounds takes sounds before pictures, and the last evaluation before the true recordings, the best and the first.
func (s *Samples) sounds(run *record.Run, sets []set, at map[key]int, media *Media, link string) {
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sets[a].rank, sets[b].rank) })
	each := func(do func(i int, u *record.Utterance, text *Text)) {
		for _, i := range order {
			for j := range sets[i].utterances {
				u := &sets[i].utterances[j]
				if n, ok := at[key{u.Clip, u.Number}]; ok {
					do(i, u, &s.Texts[n])
				}
			}
		}
	}
	each(func(i int, u *record.Utterance, text *Text) {
		text.Takes[i] = TakeOf(u, sets[i].when, run.Folder, link, media)
		if text.Reference == nil {
			text.Reference = media.Take(run.Folder, u.Reference, link)
		}
	})
	each(func(i int, u *record.Utterance, text *Text) {
		text.Takes[i].Picture = media.Take(run.Folder, u.Picture, link)
	})
}

func measures(values []record.Value) (list []Measure) {
	ordered := slices.SortedFunc(slices.Values(values),
		func(a, b record.Value) int { return measured.Compare(a.Name, b.Name) })
	for _, v := range ordered {
		m := measured.Of(v.Name)
		list = append(list, Measure{m.Title, m.Figure(v.Value)})
	}
	return list
}

// means is the table of the measures of each evaluation; nil without measures.
func means(sets []set, steps []string) *Table {
	cells := map[string][]string{}
	for i, set := range sets {
		for _, v := range record.Means(set.utterances) {
			if cells[v.Name] == nil {
				cells[v.Name] = slices.Repeat([]string{"-"}, len(sets))
			}
			cells[v.Name][i] = measured.Of(v.Name).Figure(v.Value)
		}
	}
	var rows [][]string
	if len(sets) > 0 && sets[0].utterances[0].Ended != nil {
		cut := []string{"cut"}
		for _, set := range sets {
			cut = append(cut, fmt.Sprintf("%d of %d", record.Cut(set.utterances), len(set.utterances)))
		}
		rows = append(rows, cut)
	}
	for _, name := range slices.SortedFunc(maps.Keys(cells), measured.Compare) {
		rows = append(rows, append([]string{measured.Of(name).Title}, cells[name]...))
	}
	if len(rows) == 0 {
		return nil
	}
	return NewTable("Means over the texts", "-nnn", append([]string{"measure"}, steps...), rows...)
}
