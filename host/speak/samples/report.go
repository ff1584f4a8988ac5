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
	var keys []line
	for k := range s.lines {
		if k.step == step {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, line.compare)
	return s.evaluationOf(keys)
}

// compare orders lines by their step, and has clips before sentences.
func (l line) compare(m line) int {
	kind := func(l line) int {
		if l.clip {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(l.step, m.step), cmp.Compare(kind(l), kind(m)), cmp.Compare(l.i, m.i))
}

// evaluationOf makes an evaluation of its lines; nil without any.
func (s *Speaker) evaluationOf(keys []line) *event.Spoken {
	if len(keys) == 0 {
		return nil
	}
	e := &event.Spoken{Step: keys[0].step}
	for _, k := range keys {
		e.Utterances = append(e.Utterances, s.lines[k].Utterance())
	}
	e.Measures = means(e.Utterances)
	return e
}

// history returns the last and the best mean of each measure. Only evaluations of all texts can be the best.
func (s *Speaker) history() map[string]report.SpokenMeasure {
	out := map[string]report.SpokenMeasure{}
	best := map[string]float64{}
	keys := slices.SortedFunc(maps.Keys(s.lines), line.compare)
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n].step == keys[0].step {
			n++
		}
		e := s.evaluationOf(keys[:n])
		keys = keys[n:]
		e.Incomplete = n < len(s.texts)
		for _, v := range e.Measures {
			m := out[v.Name]
			m.Last, m.LastStep = report.Float(v.Value), e.Step
			if judged := report.Judge(e, v.Name); !math.IsNaN(judged) {
				if was, ok := best[v.Name]; v.Name != Silence && (!ok || judged < was) {
					best[v.Name] = judged
					value := report.Float(v.Value)
					m.Best, m.BestStep = &value, e.Step
				}
			}
			out[v.Name] = m
		}
	}
	return out
}
