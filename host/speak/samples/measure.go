package samples

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/picture"
	"github.com/xtts-host/xtts-host/host/speak/measures"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
)

// references is the folder of the true recordings.
const references = "reference"

// text is what an evaluation speaks.
type text struct {
	Sample
	number        int // from 1, of the clips or of the sentences
	place         int // from 0, of all that the run speaks
	file, picture string
	truth         *truth // of a clip that is measured
	speaker       []float32
}

// truth is the recording that speech is compared with.
type truth struct {
	*measures.Voice
	file string // in the run folder; empty if it could not be written
}

func textsOf(l List) (all []*text) {
	for i, s := range l.Clips {
		name := "clip-" + strconv.Itoa(i+1)
		all = append(all, &text{Sample: s, number: i + 1, file: name + ".wav", picture: name + ".png"})
	}
	for i, s := range l.Sentences {
		all = append(all, &text{Sample: s, number: i + 1, file: strconv.Itoa(i+1) + ".wav"})
	}
	for i, t := range all {
		t.place = i
	}
	return all
}

// prepare measures the recording of a clip, writes it to be heard, and takes what the model's speaker graph makes of a
// voice.
func (s *Speaker) prepare(ctx context.Context, t *text) (err error) {
	if t.Voice != nil {
		if t.speaker, err = s.speaker.Embedding(t.Voice); err != nil {
			return err
		}
	}
	if t.Clip == nil || s.analyzer == nil {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	wave, err := decode(t.Clip, s.speaker.Rate())
	if err != nil {
		return err
	}
	voice, err := s.analyzer.Analyze(wave)
	if err != nil {
		return err
	}
	t.truth = &truth{Voice: voice}
	at := s.dir()
	for _, folder := range []files.Path{at, at.Join(references)} {
		folder.Mkdir() // a failure shows in what is written to it
	}
	if err := synthesize.WriteWave(at.Join(references, t.file), s.speaker.Rate(), wave); err != nil {
		s.warn(fmt.Sprintf("the recording of clip %d is not in the run folder, and training goes on: %v", t.number,
			err))
		return nil
	}
	t.truth.file = path.Join(rundir.SamplesFolder, references, t.file)
	return nil
}

func decode(row *dataset.Row, rate int) ([]float32, error) {
	at, err := row.At(rate)
	if err != nil {
		return nil, err
	}
	wave := make([]float32, at.Samples)
	return wave, dataset.NewDecoder(rate).Decode(wave, at, 0)
}

// add adds a measure, if it is a number.
func add(u *event.Utterance, name string, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		u.Measures = append(u.Measures, event.Value{Name: name, Value: value})
	}
}

// measure fills in what the file of an utterance has.
func (s *Speaker) measure(t *text, u *event.Utterance, dir files.Path) error {
	add := func(name string, value float64) { add(u, name, value) }
	if t.truth != nil {
		u.Reference = t.truth.file
	}
	row, err := dataset.OpenClip(dir.Join(t.file).String(), s.speaker.Rate())
	if err != nil { // a file without samples, or not one of this program's
		if t.truth != nil {
			add(measured.LengthRatio, 0)
		}
		return nil
	}
	u.Seconds = float64(row.Samples) / float64(s.speaker.Rate())
	if s.analyzer == nil {
		return nil
	}
	wave, err := decode(row, s.speaker.Rate())
	if err != nil {
		return err
	}
	voice, err := s.analyzer.Analyze(wave)
	if err != nil {
		return err
	}
	if t.truth != nil {
		add(measured.LengthRatio, voice.Seconds/t.truth.Seconds)
	}
	add(measured.Silence, measures.Silence(voice))
	add(measured.Repeated, measures.Repeated(voice))
	if t.truth != nil {
		c := measures.Compare(t.truth.Voice, voice)
		if add(measured.MCD, c.MCD); c.Voiced {
			add(measured.F0Cents, c.F0Cents)
		}
		add(measured.VoicingError, c.VoicingError)
	}
	if t.speaker != nil {
		if spoken, err := s.speaker.Embedding(row); err == nil { // too short or silent, it has no voice
			add(measured.SpeakerSimilarity, measures.Cosine(t.speaker, spoken))
		}
	}
	if t.truth == nil {
		return nil
	}
	u.Picture = path.Join(rundir.SamplesFolder, rundir.Step(stepOf(dir)), t.picture)
	return draw(dir.Join(t.picture), t.truth.Voice, voice)
}

// recognize compares the transcript of the recognizer with the text, if there is speech. The run goes on without it. A
// recognizer that takes too long is not asked again in the evaluation: training waits for it.
func (s *Speaker) recognize(ctx context.Context, t *text, u *event.Utterance, path string) {
	if s.recognizerSlow || u.Seconds == 0 {
		return
	}
	transcript, err := s.Recognizer.recognize(ctx, path)
	if err != nil {
		s.recognizerSlow = errors.Is(err, errSlow)
		if !s.recognizerWarned && ctx.Err() == nil {
			s.Log.Warn(fmt.Sprintf("--recognizer: no word error rate: %v", err))
			s.recognizerWarned = true
		}
		return
	}
	if rate, characters, ok := measures.WordErrors(t.Content, transcript); ok && characters {
		add(u, measured.CER, rate)
	} else if ok {
		add(u, measured.WER, rate)
	}
}

func stepOf(dir files.Path) int64 {
	step, _ := rundir.ParseStep(dir.Base())
	return step
}

// draw writes the spectrograms of the recording and of the speech below it. Training does not wait for the disk.
func draw(at files.Path, truth, speech *measures.Voice) error {
	data, err := picture.Heat(picture.Step{Size: 1.0 / measures.Frames, Unit: "s"},
		picture.Matrix{Name: "recording", Values: truth.Mel, Columns: measures.Bands},
		picture.Matrix{Name: "spoken", Values: speech.Mel, Columns: measures.Bands})
	if err != nil {
		return err
	}
	return disk.Explain(at.ReplaceNow(data), at.String(), int64(len(data)))
}

// means returns the means of the measures over the utterances that have them.
func means(all []event.Utterance) (out []event.Value) {
	for _, m := range measured.All {
		sum, n := 0.0, 0
		for _, u := range all {
			if v, ok := event.Find(u.Measures, m.Name); ok {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			out = append(out, event.Value{Name: m.Name, Value: sum / float64(n)})
		}
	}
	return out
}
