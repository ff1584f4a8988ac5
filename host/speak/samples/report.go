package samples

import (
	"cmp"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Report describes what was spoken; nil for a nil Speaker.
func (s *Speaker) Report() *report.Spoken {
	if s == nil {
		return nil
	}
	all, _ := steps(s.dir()) // a folder that cannot be read has had a warning
	spoken := &report.Spoken{
		Folder: Folder, Clips: len(s.texts) - len(s.Sentences), Sentences: len(s.Sentences), Steps: []int64{},
		Incomplete: s.incomplete, Measures: s.history(),
	}
	for _, step := range all {
		name := rundir.Step(step)
		if n := s.spoken(files.At(s.dir()).Join(name)); n > 0 {
			spoken.Steps, spoken.Files = append(spoken.Steps, step), spoken.Files+n
			spoken.Last, spoken.LastFiles = path.Join(Folder, name), n
		}
	}
	return spoken
}

// spoken counts the texts that a folder has.
func (s *Speaker) spoken(dir files.Path) (n int) {
	for _, t := range s.texts {
		if info, err := dir.Join(t.file).Lstat(); err == nil && info.Mode().IsRegular() {
			n++
		}
	}
	return n
}

// Evaluation returns the speech of an evaluation of the run as its lines have it; nil without lines.
func (s *Speaker) Evaluation(step int64) *event.Spoken {
	if s == nil {
		return nil
	}
	var e *event.Spoken
	keys := slices.SortedFunc(maps.Keys(s.lines), func(a, b line) int {
		if a.clip != b.clip {
			return map[bool]int{true: -1, false: 1}[a.clip]
		}
		return cmp.Compare(a.i, b.i)
	})
	for _, k := range keys {
		if k.step != step {
			continue
		}
		if e == nil {
			e = &event.Spoken{Step: step}
		}
		e.Utterances = append(e.Utterances, s.lines[k].Utterance())
	}
	if e != nil {
		e.Measures = means(e.Utterances)
	}
	return e
}

// history returns the last and the best mean of each measure.
func (s *Speaker) history() map[string]report.SpokenMeasure {
	all := map[int64]bool{}
	for k := range s.lines {
		all[k.step] = true
	}
	out := map[string]report.SpokenMeasure{}
	best := map[string]float64{}
	for _, step := range slices.Sorted(maps.Keys(all)) {
		e := s.Evaluation(step)
		for _, v := range e.Measures {
			m := out[v.Name]
			m.Last, m.LastStep = report.Float(v.Value), step
			if judged := report.Judge(e, v.Name); !math.IsNaN(judged) {
				if was, ok := best[v.Name]; v.Name != Silence && (!ok || judged < was) {
					best[v.Name] = judged
					value := report.Float(v.Value)
					m.Best, m.BestStep = &value, step
				}
			}
			out[v.Name] = m
		}
	}
	return out
}
