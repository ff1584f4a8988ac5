package synthesize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/griffinlim"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// frames is a model that predicts frames of a log-mel spectrogram one after the other.
type frames struct {
	*Speaker
	bands      int
	sampleRate int
	runsOf     float64             // a second
	griffinLim *griffinlim.Vocoder // if there is no vocoder
}

// errFrame says that a frame has a number that is not finite.
var errFrame = errors.New("the next frame is not finite")

func newFrames(s *Speaker, f manifest.Features, threads int) (frames, error) {
	m := frames{Speaker: s, bands: f.NMels, sampleRate: f.SampleRate}
	m.runsOf = float64(f.SampleRate) / float64(f.HopLength)
	for _, out := range s.step.Spec.Outputs {
		if out.Name == manifest.TensorFrames {
			m.runsOf /= float64(max(1, out.Shape[1].Size))
		}
	}
	if s.vocoder != nil {
		m.sampleRate = s.vocoder.Spec.SampleRate
		return m, nil
	}
	var err error
	g := s.spec.Frames.GriffinLim
	m.griffinLim, err = griffinlim.New(f,
		griffinlim.Config{Iterations: g.Iterations, Momentum: g.Momentum, Threads: threads})
	return m, err
}

func (f frames) rate() int { return f.sampleRate }

func (f frames) unit() string { return "frame" }

// units are runs of the model here, which the length of a text is bounded by.
func (f frames) units(seconds float64) int {
	return max(1, int(seconds*f.runsOf))
}

// speak makes the waveform when all frames are known: each sample depends on all of them.
func (f frames) speak(
	ctx context.Context, voice *Voice, tokens []int32, longest int, chosen sampling.Settings,
	emit func([]float32) error,
) (Spoken, error) {
	all, spoken, err := f.decode(ctx, voice, tokens, longest, f.ended)
	if err != nil {
		return spoken, err
	}
	wave, err := f.waveform(ctx, all, chosen)
	if err != nil {
		return spoken, err
	}
	return spoken, emit(wave)
}

// rehearse predicts frames of which none is the last. Griffin-Lim takes no memory of the device.
func (f frames) rehearse(ctx context.Context, voice *Voice, tokens []int32, longest int) (Spoken, error) {
	all, spoken, err := f.decode(ctx, voice, tokens, longest, f.goesOn)
	if err == nil && f.vocoder != nil {
		_, err = f.waveform(ctx, all, sampling.Settings{})
	}
	return spoken, err
}

// warm leaves the vocoder out, which gets the frames of a whole text.
func (f frames) warm(ctx context.Context, voice *Voice, tokens []int32) error {
	_, _, err := f.decode(ctx, voice, tokens, min(2, f.spec.Longest), f.goesOn)
	return err
}

// goesOn lets no frame be the last one.
func (frames) goesOn([]float32, float64) (bool, error) { return false, nil }

// ended reports whether the last of the frames of a run is the last one of all.
func (f frames) ended(made []float32, stop float64) (bool, error) {
	for _, x := range append(slices.Clip(made), float32(stop)) {
		if x-x != 0 {
			return false, errFrame
		}
	}
	return 1/(1+math.Exp(-stop)) >= f.spec.Frames.Stop, nil
}

// decode predicts the frames of a text, in at most longest runs.
func (f frames) decode(ctx context.Context, voice *Voice, tokens []int32, longest int, ended func(
	made []float32, stop float64,
) (bool, error)) (all []float32, spoken Spoken, err error) {
	d := f.decoding(manifest.TensorFrames, manifest.TensorStop)
	defer d.close()
	if err = d.begin(voice, tokens); err != nil {
		return nil, spoken, err
	}
	for runs := 1; ; runs++ {
		made := d.made[manifest.TensorFrames]
		last, err := ended(made, float64(d.made[manifest.TensorStop][0]))
		if err != nil {
			return nil, spoken, fmt.Errorf("frame %d: %w", spoken.Length+1, err)
		}
		all = append(all, made...)
		spoken.Length += len(made) / f.bands
		if f.made(spoken.Length); last {
			return all, spoken, nil
		}
		if runs == longest {
			spoken.Cut = true
			return all, spoken, nil
		}
		if err := context.Cause(ctx); err != nil {
			return nil, spoken, err
		}
		if err := d.next(runs, nil); err != nil {
			return nil, spoken, err
		}
	}
}

// waveform makes the waveform of all frames of a text.
func (f frames) waveform(ctx context.Context, all []float32, chosen sampling.Settings) ([]float32, error) {
	if f.griffinLim != nil {
		return f.griffinLim.Waveform(ctx, all, chosen.Seed, chosen.Sequence)
	}
	given, err := inference.Floats(all, 1, len(all)/f.bands, f.bands)
	if err != nil {
		return nil, err
	}
	defer given.Close()
	wave, _, err := one(f.vocoder, inference.Values{manifest.TensorFrames: given}, manifest.TensorWaveform)
	return wave, err
}
