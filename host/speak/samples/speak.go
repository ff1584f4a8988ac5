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

// Broken says how the speech of the last evaluation has become worse than that of the one before: see [report.Broken].
func (s *Speaker) Broken() string { return report.Broken(s.before, s.last) }

// evaluate is Speak, and reports whether anything was made anew.
func (s *Speaker) evaluate(step int64) (_ *event.Spoken, anew bool) {
	ctx := stoppable{context.Background(), s.Stop}
	began := time.Now()
	e := &event.Spoken{Step: step, Folder: s.dir().Join(rundir.Step(step)).String()}
	s.recognizerSlow = false
	anew, err := s.speak(ctx, e)
	if s.file != nil {
		if serr := s.file.Sync(); err == nil {
			err = serr
		}
	}
	s.Spent(began, time.Now())
	e.Time, e.Samples, e.Incomplete = time.Since(began), len(e.Utterances), err != nil
	e.Measures = means(e.Utterances)
	s.before, s.last = s.last, e
	if err == nil {
		return e, anew
	}
	if ctx.Err() != nil || errors.Is(err, errStopped) || errors.Is(err, errLost) {
		return nil, anew
	}
	if s.incomplete++; s.world().Leads() {
		s.Log.Warn(report.NotComplete("samples", step, err), "step", step)
	}
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
	dir := s.dir().Join(rundir.Step(e.Step))
	made, err := s.makeFolders(ctx, dir)
	defer func() {
		for _, folder := range slices.Backward(made) {
			if err != nil {
				folder.Remove() // without a sample it says nothing; one with a sample stays
			}
		}
	}()
	if err != nil {
		return false, err
	}
	var failed error
	if len(s.Bundle.Manifest.Adapters) > 0 && len(s.own()) > 0 {
		failed = s.staged(func() error { return s.runtime.Refresh(ctx) })
	}
	heard := voices{}
	defer heard.close()
	return s.sayAll(ctx, e, failed, func(t *text) (said, error) {
		u, anew, err := s.say(ctx, heard, t, e.Step, dir)
		if err != nil {
			return said{Anew: anew}, s.explainText(t, dir, err)
		}
		return said{Utterance: &u, Anew: anew}, nil
	})
}

// explainText names the text of an error, and the file if it is that.
func (s *Speaker) explainText(t *text, dir files.Path, err error) error {
	return fmt.Errorf("%s: %w", t.Place, disk.Explain(err, dir.Join(t.file).String(), 1))
}

// makeFolders makes the folders of an evaluation, on rank 0, and returns those that were not there.
func (s *Speaker) makeFolders(ctx context.Context, dir files.Path) (made []files.Path, err error) {
	if s.world().Leads() {
		err = ctx.Err()
		for _, folder := range []files.Path{s.dir(), dir} { // not that of the run: it may have been removed
			if err != nil {
				break
			}
			ferr := folder.Mkdir()
			if ferr == nil {
				made = append(made, folder)
			} else if !errors.Is(ferr, fs.ErrExist) {
				err = disk.Explain(ferr, folder.String(), 1)
			}
		}
	}
	lead, lost := FromLead(s.Ranks, said{Error: told(err), Stop: ctx.Err() != nil})
	switch {
	case lost != nil:
		err = errLost
	case lead.Stop:
		err = errStopped
	case err == nil && lead.Error != "":
		err = errors.New(lead.Error)
	}
	return made, err
}

// say makes what is missing of a text: the speech, its picture and its measures.
func (s *Speaker) say(
	ctx context.Context, heard voices, t *text, step int64, dir files.Path,
) (u event.Utterance, anew bool, err error) {
	at := dir.Join(t.file)
	_, ferr := at.Lstat()
	known, ok := s.lines[lineOf(t, step)]
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
	return u, true, s.measure(t, &u, dir)
}

// lineOf is the line of a text.
func lineOf(t *text, step int64) line { return line{step, t.Clip != nil, t.number} }

// keep completes what a rank has said of a text, and on rank 0 writes its line if there is none yet.
func (s *Speaker) keep(ctx context.Context, t *text, e *event.Spoken, r said) error {
	u, key, dir := *r.Utterance, lineOf(t, e.Step), s.dir().Join(rundir.Step(e.Step))
	if s.Recognizer != nil && r.Anew && s.world().Leads() {
		s.recognize(ctx, t, &u, dir.Join(t.file).String())
		if err := ctx.Err(); err != nil { // its transcript may be missing
			return err
		}
	}
	if _, ok := s.lines[key]; !ok {
		l := report.SpokenLineOf(e.Step, u)
		s.lines[key] = l
		if s.file != nil {
			if err := s.file.Write(l); err != nil {
				return s.explainText(t, dir, err)
			}
		}
	}
	e.Utterances = append(e.Utterances, u)
	return nil
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
