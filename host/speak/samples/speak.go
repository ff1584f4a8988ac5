package samples

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Speak speaks the texts with the present weights and measures them; a file that is there stays. Training goes on
// without what cannot be spoken or written. It returns what the caller publishes, nil for a nil Speaker or after a
// stop.
func (s *Speaker) Speak(step int64) *event.Spoken {
	if s == nil {
		return nil
	}
	e, _ := s.evaluate(step)
	return e
}

// Broken says how the speech of the last evaluation has become worse than that of the one before: see [Broken].
func (s *Speaker) Broken() string { return Broken(s.before, s.last) }

// evaluate is Speak, and reports whether anything was made anew.
func (s *Speaker) evaluate(step int64) (_ *event.Spoken, anew bool) {
	ctx := stoppable{context.Background(), s.Stop}
	began := time.Now()
	e := &event.Spoken{Step: step, Folder: s.dir().Join(rundir.Step(step)).String()}
	s.recognizerSlow = false
	anew, err := s.speak(ctx, e)
	if serr := s.file.Sync(); err == nil {
		err = serr
	}
	s.Spent(began, time.Now())
	e.Time, e.Samples, e.Incomplete = time.Since(began), len(e.Utterances), err != nil
	e.Measures = means(e.Utterances)
	s.before, s.last = s.last, e
	if err == nil {
		return e, anew
	}
	if ctx.Err() != nil {
		return nil, anew
	}
	s.incomplete++
	s.Log.Warn(report.NotComplete("samples", step, err), "step", step)
	return e, anew
}

// stoppable is a context that ends when a channel is closed.
type stoppable struct {
	context.Context
	stop <-chan struct{}
}

func (s stoppable) Done() <-chan struct{} { return s.stop }

func (s stoppable) Err() error {
	select {
	case <-s.stop:
		return context.Canceled
	default:
		return nil
	}
}

func (s *Speaker) speak(ctx context.Context, e *event.Spoken) (anew bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	var made []files.Path
	defer func() {
		for _, folder := range slices.Backward(made) {
			if err != nil {
				folder.Remove() // without a sample it says nothing; one with a sample stays
			}
		}
	}()
	all := s.dir()
	dir := all.Join(rundir.Step(e.Step))
	for _, folder := range []files.Path{all, dir} { // not that of the run: it may have been removed
		err := folder.Mkdir()
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, disk.Explain(err, folder.String(), 1)
		}
		if err == nil {
			made = append(made, folder)
		}
	}
	if len(s.Bundle.Manifest.Adapters) > 0 {
		if err := s.staged(func() error { return s.runtime.Refresh(ctx) }); err != nil {
			return false, err
		}
	}
	heard := voices{}
	defer heard.close()
	job := s.Bus.Begin(event.Work{Task: event.Speaking, Unit: "texts", Of: len(s.texts)})
	defer job.End()
	for i, t := range s.texts {
		job.Do(i, len(s.texts))
		u, new, err := s.say(ctx, heard, t, e.Step, dir)
		if err != nil {
			return anew, fmt.Errorf("%s: %w", t.Place, disk.Explain(err, dir.Join(t.file).String(), 1))
		}
		e.Utterances, anew = append(e.Utterances, u), anew || new
	}
	return anew, nil
}

// say makes what is missing of a text: the speech, its picture, its line.
func (s *Speaker) say(
	ctx context.Context, heard voices, t *text, step int64, dir files.Path,
) (u event.Utterance, anew bool, err error) {
	at := dir.Join(t.file)
	_, ferr := at.Lstat()
	key := line{step, t.Clip != nil, t.number}
	known, ok := s.lines[key]
	there := ferr == nil
	if there && ok && (t.truth == nil || exists(dir.Join(t.picture))) {
		return known.Utterance(), false, nil
	}
	ended := true
	switch {
	case there && ok:
		ended = known.Ended
	case there && t.Clip == nil: // of a run that wrote no lines, or was killed before this one
	default:
		voice, err := heard.voice(ctx, s.speaker, t.Voice)
		if err != nil {
			return u, false, err
		}
		if ended, err = s.speaker.WriteFile(ctx, at, voice, t.Text, warnings{s.Log, t.Place, step}); err != nil {
			return u, false, err
		}
	}
	u = event.Utterance{
		Clip: t.Clip != nil, Number: t.number, ID: t.Place, Text: t.Content, Language: t.Language, Ended: ended,
		File: path.Join(rundir.SamplesFolder, rundir.Step(step), t.file),
	}
	if err := s.measure(ctx, t, &u, dir); err != nil {
		return u, true, err
	}
	if s.Recognizer != nil && ctx.Err() != nil { // its transcript may be missing
		return u, true, ctx.Err()
	}
	if ok {
		return u, true, nil
	}
	l := report.SpokenLineOf(step, u)
	s.lines[key] = l
	return u, true, s.file.Write(l)
}

func exists(path files.Path) bool {
	_, err := path.Lstat()
	return err == nil
}

// warnings writes the warnings of a sample to the log.
type warnings struct {
	log   *slog.Logger
	place string
	step  int64
}

func (w warnings) Write(text []byte) (int, error) {
	w.log.Info(w.place+": "+strings.TrimSpace(strings.TrimPrefix(string(text), "warning: ")), "step", w.step)
	return len(text), nil
}
