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
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Report describes what was spoken; nil for a nil Speaker.
func (s *Speaker) Report() *report.Spoken {
	if s == nil {
		return nil
	}
	spoken := &report.Spoken{
		Folder: rundir.SamplesFolder, Clips: len(s.texts) - len(s.Sentences), Sentences: len(s.Sentences),
		Steps:      []int64{},
		Incomplete: s.incomplete, Measures: s.history(),
	}
	counts := s.counts()
	for _, step := range slices.Sorted(maps.Keys(counts)) {
		n := counts[step]
		spoken.Steps, spoken.Files = append(spoken.Steps, step), spoken.Files+n
		spoken.Last, spoken.LastFiles = path.Join(rundir.SamplesFolder, rundir.Step(step)), n
	}
	for step, n := range s.written() {
		if n >= len(s.texts) {
			spoken.CompleteStep = max(spoken.CompleteStep, step)
		}
	}
	for k, l := range s.lines {
		if k.step == spoken.CompleteStep && !l.Ended {
			spoken.Cut++
		}
	}
	return spoken
}

// written counts the lines of each evaluation.
func (s *Speaker) written() map[int64]int {
	counts := map[int64]int{}
	for k := range s.lines {
		counts[k.step]++
	}
	return counts
}

// counts returns how many texts the evaluations of the run have spoken: by their lines, as old files are removed, or by
// their files if they are of a run that wrote no lines.
func (s *Speaker) counts() map[int64]int {
	counts := s.written()
	all, _ := rundir.Steps(s.dir()) // a folder that cannot be read has had a warning
	for _, step := range all {
		if n := s.spoken(s.dir().Join(rundir.Step(step))); n > counts[step] {
			counts[step] = n
		}
	}
	return counts
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

// history returns the last and the best mean of each measure, of the evaluations that have spoken all texts, as
// means over other texts do not compare. A measure that the last one lacks is not a number there.
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
		if keys = keys[n:]; n < len(s.texts) {
			continue
		}
		for name, m := range out {
			m.Last, m.LastStep = report.Float(math.NaN()), e.Step
			out[name] = m
		}
		for _, v := range e.Measures {
			m := out[v.Name]
			m.Last, m.LastStep = report.Float(v.Value), e.Step
			if judged := report.Judge(e, v.Name); !math.IsNaN(judged) {
				comparable := measured.Of(v.Name).Better != measured.Neither
				if was, ok := best[v.Name]; comparable && (!ok || judged < was) {
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
