package synthesize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/synthesize/sampling"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// WriteFile speaks a text into a WAV file, with the bundle's settings of sampling and seed 0, as the command does
// without flags.
func (s *Speaker) WriteFile(ctx context.Context, path string, voice *Voice, text Text, warnings io.Writer) error {
	out, err := create(path, s.Rate())
	if err != nil {
		return err
	}
	defer out.discard()
	t := telling{speaker: s, voice: voice, settings: settings(defaults(s.spec), 0), sound: out, warnings: warnings}
	if err := t.speak(ctx, text.parts); err != nil {
		return err
	}
	return out.finish()
}

// telling speaks the parts of a text one after the other.
type telling struct {
	speaker  *Speaker
	voice    *Voice
	settings sampling.Settings
	sound    *sound
	warnings io.Writer

	first, all time.Duration // until the first sound, and until the end
	length     int           // in units of the model
}

func (t *telling) speak(ctx context.Context, texts [][]int32) error {
	began := time.Now()
	emit := func(wave []float32) error {
		if t.first == 0 {
			t.first = time.Since(began)
		}
		return t.sound.write(wave)
	}
	for i, tokens := range texts {
		t.settings.Sequence = uint64(i)
		before := t.sound.samples
		spoken, err := t.speaker.Speak(ctx, t.voice, tokens, t.settings, emit)
		if err != nil {
			return broken(fmt.Errorf("part %d of %d: %w", i+1, len(texts), err))
		}
		if t.length += spoken.Length; spoken.Cut {
			fmt.Fprintf(t.warnings, "warning: part %d of %d was cut after %s: the model did not end it\n", i+1, len(texts), report.Count(spoken.Length, t.speaker.Unit()))
		}
		if t.sound.samples == before {
			fmt.Fprintf(t.warnings, "warning: part %d of %d has no sound: the model ended it after %s; a model learns to end in training\n", i+1, len(texts), report.Count(spoken.Length, t.speaker.Unit()))
		}
	}
	t.all = time.Since(began)
	return nil
}

// summary says what was spoken, and how fast.
func (t *telling) summary(out string) string {
	units := report.Count(t.length, t.speaker.Unit())
	if t.sound.samples == 0 {
		return fmt.Sprintf("spoken       nothing in %.2f s, %s\nwritten      %s", t.all.Seconds(), units, out)
	}
	length := float64(t.sound.samples) / float64(t.sound.rate)
	return fmt.Sprintf("first sound  after %.3f s\nspoken       %.2f s in %.2f s: real-time factor %.3f, %s\nwritten      %s",
		t.first.Seconds(), length, t.all.Seconds(), t.all.Seconds()/length, units, out)
}

// broken adds the next step to an error while speaking.
func broken(err error) error {
	if err = advise(err); hint.Of(err) != "" || errors.Is(err, train.ErrInterrupted) {
		return err
	}
	return hint.Errorf("try that part alone; if it fails again, export the bundle again", "%w", err)
}
