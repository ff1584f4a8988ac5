package samples

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/measures"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// openClips opens a speaker of n validation clips.
func (r *run) openClips(t *testing.T, n int) *Speaker {
	t.Helper()
	var err error
	if r.List, err = Clips(n, r.bundle, r.data, texts.Rules{}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), r.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// spoken returns the lines of spoken.jsonl.
func (r *run) spoken(t *testing.T) (all []report.SpokenLine) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, rundir.SpokenFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var l report.SpokenLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// TestClips: clips are spread over the list, in order, without those that are too short or too long.
func TestClips(t *testing.T) {
	r := newRun(t)
	rows := r.data.Rows
	ids := func(n int) (ids []string) {
		list, err := Clips(n, r.bundle, r.data, texts.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Clips {
			if c.Voice != c.Clip || c.Content != c.Clip.Text || c.Language != "en" {
				t.Errorf("%+v", c)
			}
			ids = append(ids, c.Place)
		}
		return ids
	}
	of := func(places ...int) (ids []string) {
		for _, i := range places {
			ids = append(ids, rows[i].ID)
		}
		return ids
	}
	if len(rows) != 6 || !slices.Equal(ids(2), of(0, 3)) || !slices.Equal(ids(3), of(0, 2, 4)) || len(ids(9)) != 6 {
		t.Errorf("of %d clips: %v, %v, %v", len(rows), ids(2), ids(3), ids(9))
	}
	rows[0].Samples, rows[3].Samples = 1000, 40*22050
	if !slices.Equal(ids(2), of(1, 4)) {
		t.Errorf("around one too short and one too long: %v", ids(2))
	}
	for i := range rows {
		rows[i].Samples = 1000
	}
	if _, err := Clips(2, r.bundle, r.data, texts.Rules{}); err == nil || hint.Of(err) == "" {
		t.Errorf("without a clip: %v", err)
	}
}

// speakerOf returns what the graph speaker makes of a clip: the largest magnitude of its first two seconds, and their
// norm.
func speakerOf(t *testing.T, row *dataset.Row) []float32 {
	t.Helper()
	wave, err := decode(row, 22050)
	if err != nil {
		t.Fatal(err)
	}
	var largest, squares float64
	for _, x := range wave[:min(len(wave), 2*22050)] {
		largest, squares = max(largest, math.Abs(float64(x))), squares+float64(x)*float64(x)
	}
	return []float32{float32(largest), float32(math.Sqrt(squares))}
}

// TestSimilarity: speech is compared with the voice of its own clip.
func TestSimilarity(t *testing.T) {
	r := newRun(t)
	r.bundle.Manifest.Synthesis.Codes.Stop, r.bundle.Manifest.Synthesis.Longest = 100, 100_000 // it never comes
	r.List = must(Clips(2, r.bundle, r.data, texts.Rules{}))
	for i := range r.Clips {
		r.Clips[i].Text = r.Clips[i].Text.Within(0.25)
	}
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	for i, u := range s.Speak(1).Utterances {
		row, err := dataset.OpenClip(filepath.Join(r.dir, u.File), 22050)
		if err != nil {
			t.Fatal(err)
		}
		spoken := speakerOf(t, row)
		want := measures.Cosine(speakerOf(t, r.Clips[i].Clip), spoken)
		exchanged := measures.Cosine(speakerOf(t, r.Clips[1-i].Clip), spoken)
		got, ok := event.Find(u.Measures, measured.SpeakerSimilarity)
		if !ok || math.Abs(got-want) > 1e-6 || math.Abs(want-exchanged) < 1e-5 {
			t.Errorf("clip %d: similarity %v, want %v; %v with the other clip", i+1, got, want, exchanged)
		}
	}
}

// TestSpokenClips: an evaluation speaks clips, measures them against their recordings, and has a line, a picture and a
// file for each, the recordings beside them.
func TestSpokenClips(t *testing.T) {
	r := newRun(t)
	s := r.openClips(t, 2)
	e := s.Speak(4)
	lines := r.spoken(t)
	if len(lines) != 2 || e.Samples != 2 || e.Incomplete || len(e.Utterances) != 2 {
		t.Fatalf("%d lines, %+v", len(lines), e)
	}
	l, row := lines[1], r.Clips[1].Clip
	if l.Step != 4 || l.Clip != 2 || l.Sample != 0 || l.ID != row.ID || l.Text != row.Text || l.Language != "en" ||
		l.File != "samples/step-000004/clip-2.wav" || l.Reference != "samples/reference/clip-2.wav" ||
		l.Picture != "samples/step-000004/clip-2.png" {
		t.Errorf("%+v", l)
	}
	spoken, err := dataset.OpenClip(filepath.Join(r.dir, l.File), 24000)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := dataset.OpenClip(filepath.Join(r.dir, l.Reference), 24000)
	if err != nil {
		t.Fatal(err)
	}
	if seconds := float64(spoken.Samples) / 24000; l.Seconds != seconds || math.Abs(
		l.Measures[measured.LengthRatio]-float64(spoken.Samples)/float64(truth.Samples)) > 1e-9 {
		t.Errorf("%g s of %d samples, ratio %g", l.Seconds, spoken.Samples, l.Measures[measured.LengthRatio])
	}
	if want := float64(row.Samples) / 22050; math.Abs(float64(truth.Samples)/24000-want) > 1e-3 {
		t.Errorf("the recording has %d samples of 24 kHz, and is of %g s", truth.Samples, want)
	}
	for _, name := range []string{measured.Silence, measured.Repeated, measured.MCD, measured.VoicingError} {
		v, ok := l.Measures[name]
		mean, has := Mean(e, name)
		if first := lines[0].Measures[name]; !ok || !has || math.Abs(mean-(v+first)/2) > 1e-12 {
			t.Errorf("%s is %g and %g, their mean %g", name, first, v, mean)
		}
	}
	f, err := os.Open(filepath.Join(r.dir, l.Picture))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c, err := png.DecodeConfig(f); err != nil || c.Height < 2*80*4 {
		t.Errorf("%+v, %v", c, err)
	}
	got := s.Report()
	if got.Clips != 2 || got.Sentences != 0 || got.Files != 2 || got.Measures[measured.MCD].LastStep != 4 ||
		got.Measures[measured.MCD].Best != nil || got.Measures[measured.LengthRatio].Best == nil ||
		got.Measures[measured.Silence].Best != nil ||
		r.log.Len() > 0 { // so short a clip is the best one by nothing else
		t.Errorf("%+v, log: %s", got, &r.log)
	}
}

// TestClipsResume: a resumed run has the lines of its evaluations once, and those of later ones again; a picture or a
// file that is missing is made again.
func TestClipsResume(t *testing.T) {
	r := newRun(t)
	list := must(Read(r.write(t, "a.txt", "hello there."), r.bundle, r.data, texts.Rules{}))
	r.List = must(Clips(1, r.bundle, r.data, texts.Rules{}))
	r.Sentences = list.Sentences
	s := must(Open(t.Context(), r.Config))
	for step := range int64(3) {
		s.Speak(step + 1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := must(os.ReadFile(filepath.Join(r.dir, rundir.SpokenFile)))
	files := []string{
		"samples/step-000002/clip-1.png", "samples/step-000002/1.wav", "samples/step-000002/clip-1.wav",
		"samples/reference/clip-1.wav",
	}
	for _, name := range files {
		path := filepath.Join(r.dir, name)
		want := must(os.ReadFile(path))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		r.Step, r.EvaluatedStep = 2, 2
		again := must(Open(t.Context(), r.Config))
		if e := again.Evaluation(2); len(e.Utterances) != 2 || !e.Utterances[0].Clip || e.Utterances[1].Clip {
			t.Errorf("%+v", e)
		}
		again.Speak(3)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not made again: %v", name, err)
		}
		if got := must(os.ReadFile(filepath.Join(r.dir, rundir.SpokenFile))); !bytes.Equal(got, whole) {
			t.Errorf("without %s, the lines are\n%sand were\n%s", name, got, whole)
		}
	}
	// killed before the lines of the evaluation
	first := bytes.IndexByte(whole, '\n') + 1
	if err := os.WriteFile(filepath.Join(r.dir, rundir.SpokenFile), whole[:2*first], 0o666); err != nil {
		t.Fatal(err)
	}
	again := must(Open(t.Context(), r.Config))
	defer again.Close()
	if again.Speak(3); !bytes.Equal(must(os.ReadFile(filepath.Join(r.dir, rundir.SpokenFile))), whole) {
		t.Errorf("the lines that were missing are %s", must(os.ReadFile(filepath.Join(r.dir, rundir.SpokenFile))))
	}
	r.List, r.EvaluatedStep = List{}, 1
	if none, err := Open(t.Context(), r.Config); none != nil || err != nil || len(r.spoken(t)) != 2 {
		t.Errorf("a run that speaks no more has %d lines, %v", len(r.spoken(t)), err)
	}
}

// TestDamagedLines: a line that cannot be read keeps no run from going on, with or without speech: its text is spoken
// again if it is of the last evaluation.
func TestDamagedLines(t *testing.T) {
	r := newRun(t)
	r.List = must(Clips(1, r.bundle, r.data, texts.Rules{}))
	s := must(Open(t.Context(), r.Config))
	for step := range int64(3) {
		s.Speak(step + 1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, rundir.SpokenFile)
	whole := must(os.ReadFile(path))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	damaged := slices.Concat(lines[0], []byte("{\n"), lines[2])
	spoken, none := r.List, List{}
	for _, c := range []struct {
		step int64
		list List
		want []byte
	}{
		{2, spoken, slices.Concat(lines[0], lines[1])}, {3, spoken, slices.Concat(lines[0], lines[2])},
		{2, none, lines[0]},
	} {
		if err := os.WriteFile(path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		r.log.Reset()
		r.Step, r.EvaluatedStep, r.List = c.step, c.step, c.list
		s, err := Open(t.Context(), r.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := must(os.ReadFile(path)); !bytes.Equal(got, c.want) || strings.Count(r.log.String(), "WARN") != 1 ||
			!strings.Contains(r.log.String(), "1 line cannot be read") {
			t.Errorf("step %d: %s, log: %s", c.step, got, &r.log)
		}
	}
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o777)); err != nil {
		t.Fatal(err)
	}
	r.log.Reset()
	if s, err := Open(t.Context(), r.Config); s != nil || err != nil || r.log.Len() == 0 {
		t.Errorf("a run that speaks no more: %v, log: %s", err, &r.log)
	}
}

// TestOptional: without a word of the user, a clip that has no voice is left out, and a run without one goes on.
func TestOptional(t *testing.T) {
	r := newRun(t)
	r.List = must(Clips(2, r.bundle, r.data, texts.Rules{}))
	gone := *r.Clips[0].Voice
	gone.Path = "none.wav"
	r.Clips[0].Voice = &gone
	if _, err := Open(t.Context(), r.Config); err == nil || !strings.HasPrefix(err.Error(), "--spoken-clips: ") {
		t.Errorf("clips that were asked for: %v", err)
	}
	r.Optional = true
	s := must(Open(t.Context(), r.Config))
	if e := s.Speak(1); len(e.Utterances) != 1 || e.Utterances[0].Number != 2 || s.Report().Clips != 1 ||
		!strings.Contains(r.log.String(), "is not spoken at evaluations") {
		t.Errorf("%+v, log: %s", e, &r.log)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.Clips[1].Voice = &gone
	r.log.Reset()
	if s, err := Open(t.Context(), r.Config); s != nil || err != nil ||
		!strings.Contains(r.log.String(), "no validation clips are spoken") {
		t.Errorf("%v, %v, log: %s", s, err, &r.log)
	}
}

// TestCut: a clip that the model does not end is cut at three times its length, or two seconds.
func TestCut(t *testing.T) {
	r := newRun(t)
	r.bundle.Manifest.Synthesis.Codes.Stop, r.bundle.Manifest.Synthesis.Longest = 100, 100_000 // it never comes
	r.List = must(Clips(1, r.bundle, r.data, texts.Rules{}))
	r.Clips[0].Text = r.Clips[0].Text.Within(0.01) // of a model whose codes have 4 samples
	s := must(Open(t.Context(), r.Config))
	defer s.Close()
	if u := s.Speak(1).Utterances[0]; u.Ended || math.Abs(u.Seconds-0.01) > 1e-3 {
		t.Errorf("%+v", u)
	}
	if broken := s.Broken(); broken != "" {
		t.Errorf("the first evaluation is broken: %s", broken)
	}
}

// utterance is a clip with its length, that of its recording, and its distortion.
func utterance(number int, seconds, truth, mcd float64, ended bool) event.Utterance {
	return event.Utterance{
		Clip: true, Number: number, Seconds: seconds, Ended: ended,
		Measures: []event.Value{{Name: measured.LengthRatio, Value: seconds / truth}, {Name: measured.MCD, Value: mcd}},
	}
}

func evaluation(all ...event.Utterance) *event.Spoken {
	return &event.Spoken{Utterances: all, Measures: means(all)}
}

// TestHistory: the report of a long run has the best of the evaluations of all texts, and takes no longer than its
// lines: a second, and not the square of their number.
func TestHistory(t *testing.T) {
	const evaluations, all = 1000, 52
	s := &Speaker{lines: map[line]report.SpokenLine{}, texts: make([]*text, all)}
	for step := range int64(evaluations) {
		for i := range all {
			if step == 7 && i > 0 {
				continue // the lowest, but of one text
			}
			distance := 9 + math.Abs(float64(step-600))/1000
			if step == 7 {
				distance = 1
			}
			u := utterance(i+1, 2, 2, distance, true)
			s.lines[line{step, true, i + 1}] = report.SpokenLineOf(step, u)
		}
	}
	began := time.Now()
	got := s.history()[measured.MCD]
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d evaluations of %d texts took %v", evaluations, all, took)
	}
	if got.BestStep != 600 || math.Abs(float64(*got.Best)-9) > 1e-9 || got.LastStep != evaluations-1 {
		t.Errorf("%+v", got)
	}
}

func TestJudge(t *testing.T) {
	e := evaluation(utterance(1, 1, 2, 6, true), utterance(2, 4, 2, 8, true))
	e.Utterances[0].Measures = append(e.Utterances[0].Measures, event.Value{Name: measured.F0Cents, Value: 10})
	for i := range e.Utterances {
		e.Utterances[i].Measures = append(e.Utterances[i].Measures,
			event.Value{Name: measured.SpeakerSimilarity, Value: 0.5 + 0.2*float64(i)})
	}
	for name, want := range map[string]float64{
		measured.MCD: 7, measured.LengthRatio: math.Ln2, measured.SpeakerSimilarity: -0.6,
		measured.F0Cents: math.NaN(), measured.WER: math.NaN(),
	} {
		if got := report.Judge(e, name); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s is judged %g, want %g", name, got, want)
		}
	}
	for _, broken := range []event.Utterance{utterance(2, 9, 2, 8, true), utterance(2, 3, 2, 8, false)} {
		e := evaluation(utterance(1, 1, 2, 6, true), broken)
		if !math.IsNaN(report.Judge(e, measured.MCD)) || math.IsNaN(report.Judge(e, measured.LengthRatio)) {
			t.Errorf("speech that is not whole is judged %g", report.Judge(e, measured.MCD))
		}
	}
	if e.Incomplete = true; !math.IsNaN(report.Judge(e, measured.MCD)) || !math.IsNaN(report.Judge(nil, measured.MCD)) {
		t.Error("an evaluation that is not complete is judged")
	}
}
