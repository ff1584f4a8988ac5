package synthesize

import (
	"context"

	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// codes is a model that chooses one code after the other, with a vocoder of its latents.
type codes struct{ *Speaker }

func (c codes) rate() int { return c.vocoder.Spec.SampleRate }

func (c codes) unit() string { return "code" }

func (c codes) speak(
	ctx context.Context, voice *Voice, tokens []int32, longest int, chosen sampling.Settings,
	emit func([]float32) error,
) (Spoken, error) {
	return c.whole(ctx, voice, tokens, longest, sampling.New(chosen, c.spec.Codes.Prompt).Next, emit)
}

func (c codes) units(seconds float64) int {
	windows := c.spec.Codes.Vocoder
	return max(1, int(seconds*float64(c.rate())*float64(windows.Latents)/float64(windows.Samples)))
}

func (c codes) rehearse(ctx context.Context, voice *Voice, tokens []int32, longest int) (Spoken, error) {
	return c.whole(ctx, voice, tokens, longest, c.other, silent)
}

func (c codes) whole(
	ctx context.Context, voice *Voice, tokens []int32, longest int, choose func(logits []float32) (int, error),
	emit func([]float32) error,
) (Spoken, error) {
	w := newWaveform(c.Speaker, voice, emit)
	spoken, err := c.decode(ctx, voice, tokens, longest, choose, w.add)
	if err == nil {
		err = w.end()
	}
	return spoken, err
}

// warm gives the vocoder the first latent as often as it takes latents for the first part of a waveform.
func (c codes) warm(ctx context.Context, voice *Voice, tokens []int32) error {
	w := newWaveform(c.Speaker, voice, silent)
	first := min(firstPart+c.spec.Codes.Vocoder.Context, c.spec.Longest)
	_, err := c.decode(ctx, voice, tokens, min(2, c.spec.Longest), c.other, func(latent []float32) error {
		for ; first > 0; first-- {
			if err := w.add(latent); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && w.emitted == 0 {
		err = w.end()
	}
	return err
}

// silent is the emit of speech that no one hears.
func silent([]float32) error { return nil }

// other chooses a code that does not end the text.
func (c codes) other([]float32) (int, error) {
	if c.spec.Codes.Stop == 0 {
		return 1, nil
	}
	return 0, nil
}

// decode has the codes of a text chosen from their logits, up to a number of them, and calls take with the latent of
// each, that of the code that ends it, too.
func (c codes) decode(
	ctx context.Context, voice *Voice, tokens []int32, longest int, choose func(logits []float32) (int, error),
	take func([]float32) error,
) (spoken Spoken, err error) {
	d := c.decoding(manifest.TensorLogits, manifest.TensorLatent)
	defer d.close()
	if err = d.begin(voice, tokens); err != nil {
		return spoken, err
	}
	for {
		code, err := choose(d.made[manifest.TensorLogits])
		if err != nil {
			return spoken, err
		}
		if err := take(d.made[manifest.TensorLatent]); err != nil {
			return spoken, err
		}
		if code == c.spec.Codes.Stop {
			return spoken, nil
		}
		spoken.Length++
		if c.made(spoken.Length); spoken.Length == longest {
			spoken.Cut = true
			return spoken, nil
		}
		if err := context.Cause(ctx); err != nil {
			return spoken, err
		}
		if err := d.next(spoken.Length, map[string]int{manifest.TensorCode: code}); err != nil {
			return spoken, err
		}
	}
}
