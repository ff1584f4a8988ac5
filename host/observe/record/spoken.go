package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

const (
	maxUtterances = 400 // of an evaluation
)

// Utterance is a text that was spoken at an evaluation.
type Utterance struct {
	Step           int64
	Clip           bool // of the validation data, otherwise a sentence of --samples
	Number         int
	ID             string
	Text, Language string
	// File, Reference and Picture are paths in the run folder, "" if there is none.
	File, Reference, Picture string
	Seconds                  float64
	Ended                    *bool // nil if it is not known
	Measures                 []Value
}

// Spoken has the utterances of the first, the best and the last evaluation that spoke, without the same one twice.
type Spoken struct {
	First, Best, Last []Utterance
	// Evaluations counts those that spoke.
	Evaluations int
	// Cut is the share of the texts of each evaluation that the model did not end, and Course has the means of its
	// measures, in the order of package measured.
	Cut    Curve
	Course []Course
	// Broke are the evaluations after which speech was worse than after the one before, the first ones of them.
	Broke []Break
	// Refused counts paths that are none of a sample: they are left out.
	Refused int
}

// Course is a measure over the evaluations.
type Course struct {
	Name string
	Curve
}

// Break says how the speech of an evaluation had become worse, as [report.Broken] says it.
type Break struct {
	Step int64
	How  string
}

// mostBreaks bounds the list of breaks.
const mostBreaks = 64

// End is what the last evaluation that spoke has spoken.
func (s *Spoken) End() []Utterance {
	if s.Last == nil {
		return s.First
	}
	return s.Last
}

// At is what the evaluation of a step has spoken, if it is the first, the best or the last one; nil for another.
func (s *Spoken) At(step int64) []Utterance {
	for _, list := range [][]Utterance{s.First, s.Best, s.Last} {
		if len(list) > 0 && list[0].Step == step {
			return list
		}
	}
	return nil
}

// maxMeasures bounds the measures of an evaluation.
const maxMeasures = 32

// Means are the means of the measures of an evaluation, each over the texts that have it, in the order of package
// measured. Those of a stranger may be too large for a number: infinite, or NaN.
func Means(texts []Utterance) []Value {
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, u := range texts {
		for _, m := range u.Measures {
			sums[m.Name] += m.Value
			counts[m.Name]++
		}
	}
	var list []Value
	for _, name := range slices.SortedFunc(maps.Keys(sums), measured.Compare) {
		list = append(list, Value{name, sums[name] / counts[name]})
	}
	return list[:min(len(list), maxMeasures)]
}

// Cut counts the texts that the model did not end.
func Cut(texts []Utterance) (n int) {
	for _, u := range texts {
		if u.Ended != nil && !*u.Ended {
			n++
		}
	}
	return n
}

// heard are the texts of an evaluation without what a page shows of them.
func heard(texts []Utterance) *event.Spoken {
	e := &event.Spoken{}
	for _, u := range texts {
		one := event.Utterance{Clip: u.Clip, Number: u.Number, Seconds: u.Seconds, Ended: u.Ended == nil || *u.Ended}
		for _, m := range u.Measures {
			one.Measures = append(one.Measures, event.Value(m))
		}
		e.Utterances = append(e.Utterances, one)
	}
	return e
}

// follow adds an evaluation to the courses. before is the one before it, nil for the first one.
func (s *Spoken) follow(before, now []Utterance) {
	step := now[0].Step
	s.Cut.Add(step, float64(Cut(now))/float64(len(now)))
	for _, m := range Means(now) {
		i := slices.IndexFunc(s.Course, func(c Course) bool { return c.Name == m.Name })
		if i < 0 {
			if i = len(s.Course); i == maxMeasures {
				continue
			}
			s.Course = append(s.Course, Course{Name: m.Name})
		}
		s.Course[i].Add(step, m.Value)
	}
	if how := report.Broken(heard(before), heard(now)); how != "" && len(s.Broke) < mostBreaks {
		s.Broke = append(s.Broke, Break{step, how})
	}
}

// inSamples is what a sample is called in a run folder.
var inSamples = regexp.MustCompile(`^samples/(step-[0-9]{6,18}|reference)/[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.(wav|png)$`)

// IsSample reports whether a path in a run folder is that of a sample: speech, a recording, or a picture of both.
func IsSample(path string) bool { return inSamples.MatchString(path) }

type utteranceLine struct {
	Step                     *int64
	Clip, Sample             int
	ID, Text, Language       string
	File, Reference, Picture string
	Seconds                  float64
	Ended                    *bool
	Measures                 map[string]any
}

// ReadUtterance reads a line of spoken.jsonl. refused counts its paths that are none of a sample, and that it therefore
// has not.
func ReadUtterance(line []byte) (u Utterance, refused int, err error) {
	var v utteranceLine
	if err := json.Unmarshal(line, &v); err != nil {
		return u, 0, err
	}
	if v.Step == nil || *v.Step < 0 {
		return u, 0, ErrNoStep
	}
	var s Spoken
	u = s.utterance(&v)
	return u, s.Refused, nil
}

// readSpoken reads spoken.jsonl. best is the step of the best evaluation, or -1.
func readSpoken(run files.Path, best int64) (s Spoken, problem string) {
	var now []Utterance
	step := int64(-1)
	keep := func() {
		if len(now) == 0 {
			return
		}
		s.follow(s.Last, now)
		switch {
		case s.Evaluations == 1:
			s.First = now
		case step == best:
			s.Best = now
		}
		s.Last = now
	}
	problem = Lines(run.Join(rundir.SpokenFile), func(line []byte) error {
		var v utteranceLine
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if v.Step == nil {
			return ErrNoStep
		}
		if *v.Step < step {
			return ErrOrder
		}
		if *v.Step != step {
			keep()
			now, step = nil, *v.Step
			s.Evaluations++
		}
		if len(now) < maxUtterances {
			now = append(now, s.utterance(&v))
		}
		return nil
	})
	keep()
	if s.Evaluations == 0 {
		return fromFolder(run, best), problem
	}
	slices.SortFunc(s.Course, func(a, b Course) int { return measured.Compare(a.Name, b.Name) })
	return s.distinct(), problem
}

// utterance is that of a line, without paths that lead elsewhere.
func (s *Spoken) utterance(v *utteranceLine) Utterance {
	u := Utterance{
		Step: *v.Step, Clip: v.Clip > 0, Number: max(v.Clip, v.Sample), ID: v.ID, Text: v.Text, Language: v.Language,
		Seconds: v.Seconds, Ended: v.Ended,
	}
	for _, p := range []struct {
		to   *string
		path string
	}{{&u.File, v.File}, {&u.Reference, v.Reference}, {&u.Picture, v.Picture}} {
		switch {
		case inSamples.MatchString(p.path):
			*p.to = p.path
		case p.path != "":
			s.Refused++
		}
	}
	for name, number := range v.Measures {
		if n, ok := number.(float64); ok {
			u.Measures = append(u.Measures, Value{name, n})
		}
	}
	u.Measures = sorted(u.Measures)
	return u
}

// distinct leaves out an evaluation that is there as another one.
func (s Spoken) distinct() Spoken {
	same := func(a, b []Utterance) bool { return len(a) > 0 && len(b) > 0 && a[0].Step == b[0].Step }
	if same(s.Last, s.First) {
		s.Last = nil
	}
	if same(s.Best, s.First) || same(s.Best, s.Last) {
		s.Best = nil
	}
	return s
}

// fromFolder finds the samples of a run that has no spoken.jsonl, as those of earlier versions. Their texts are not
// known.
func fromFolder(run files.Path, best int64) (s Spoken) {
	steps, err := rundir.Steps(run.Join(rundir.SamplesFolder))
	if err != nil {
		return s
	}
	if s.Evaluations = len(steps); s.Evaluations == 0 {
		return s
	}
	s.First, s.Last = inFolder(run, steps[0]), inFolder(run, steps[len(steps)-1])
	if best >= 0 {
		s.Best = inFolder(run, best)
	}
	return s.distinct()
}

func inFolder(run files.Path, step int64) (list []Utterance) {
	for i := 1; i <= maxUtterances; i++ {
		file := path.Join(rundir.SamplesFolder, rundir.Step(step), fmt.Sprintf("%d.wav", i))
		info, err := run.Join(strings.Split(file, "/")...).Lstat()
		if err != nil || !info.Mode().IsRegular() {
			break
		}
		list = append(list, Utterance{Step: step, Number: i, File: file})
	}
	return list
}
