package synthesize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// WriteFile speaks a text into a WAV file, with the bundle's settings of sampling and seed 0, as the command does
// without flags. It reports whether the model ended all parts of the text itself.
func (s *Speaker) WriteFile(
	ctx context.Context, at files.Path, voice *Voice, text Text, warnings io.Writer,
) (ended bool, err error) {
	out, err := create(at, s.Rate())
	if err != nil {
		return false, err
	}
	defer out.discard()
	u := utterance{speaker: s, voice: voice, settings: settings(defaults(s.spec), 0), sound: out, warnings: warnings}
	if err := u.speak(ctx, text); err != nil {
		return false, err
	}
	return !u.cut, out.finish()
}

// utterance is a text that is spoken, its parts one after the other.
type utterance struct {
	speaker  *Speaker
	voice    *Voice
	settings sampling.Settings
	sound    *sound
	warnings io.Writer
	waiting  *report.Waiting // shows how much has been made; nil for nothing
	silence  string          // what to do about a part without sound; "" means to train longer

	first, all time.Duration // until the first sound, and until the end
	length     int           // in units of the model
	cut        bool          // a part
}

func (u *utterance) speak(ctx context.Context, text Text) error {
	began, texts := time.Now(), text.parts
	emit := func(wave []float32) error {
		if u.first == 0 {
			u.first = time.Since(began)
		}
		return u.sound.write(wave)
	}
	for i, tokens := range texts {
		u.settings.Sequence = uint64(i)
		before := u.sound.samples
		longest := u.speaker.spec.Longest
		if text.limit > 0 {
			said := float64(u.sound.samples) / float64(u.sound.rate)
			longest = u.speaker.most(max(text.limit-said, shortest))
		}
		spoken, err := u.speaker.Speak(ctx, u.voice, tokens, longest, u.settings, emit)
		u.waiting.Close()
		if err != nil {
			return broken(fmt.Errorf("part %d of %d: %w", i+1, len(texts), err))
		}
		if u.length += spoken.Length; spoken.Cut {
			u.cut = true
			fmt.Fprintf(u.warnings, "warning: part %d of %d was cut after %s: the model did not end it\n", i+1,
				len(texts), units.Count(spoken.Length, u.speaker.Unit()))
		}
		if u.sound.samples == before {
			fmt.Fprintf(u.warnings, "warning: part %d of %d has no sound: the model ended after %s; %s\n",
				i+1, len(texts), units.Count(spoken.Length, u.speaker.Unit()), cmp.Or(u.silence, "train it longer"))
		}
	}
	u.all = time.Since(began)
	return nil
}

// shortest is what a part may take in a text whose limit is reached, in seconds: one unit.
const shortest = 1e-9

// summary says what was spoken, and how fast.
func (u *utterance) summary(out string) string {
	units := units.Count(u.length, u.speaker.Unit())
	if out == "-" {
		out = "the standard output"
	}
	if u.sound.samples == 0 {
		return fmt.Sprintf("spoken       nothing in %.2f s, %s\nwritten      %s", u.all.Seconds(), units, out)
	}
	length := float64(u.sound.samples) / float64(u.sound.rate)
	return fmt.Sprintf(
		"first sound  after %.3f s\nspoken       %.2f s in %.2f s: real-time factor %.3f, %s\nwritten      %s",
		u.first.Seconds(), length, u.all.Seconds(), u.all.Seconds()/length, units, out)
}

// broken adds the next step to an error while speaking.
func broken(err error) error {
	if err = advise(err); hint.Of(err) != "" || errors.Is(err, exit.ErrInterrupted) {
		return err
	}
	return hint.Errorf("try that part alone; if it fails again, export the bundle again", "%w", err)
}
