package synthesize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/inference"
	"github.com/xtts-host/xtts-host/host/synthesize/griffinlim"
	"github.com/xtts-host/xtts-host/host/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// frames is a model that predicts frames of a log-mel spectrogram one after the other.
type frames struct {
	*Speaker
	bands      int
	sampleRate int
	griffinLim *griffinlim.Vocoder // if there is no vocoder
}

// errFrame says that a frame has a number that is not finite.
var errFrame = errors.New("the next frame is not finite")

func newFrames(s *Speaker, f manifest.Features, threads int) (frames, error) {
	m := frames{Speaker: s, bands: f.NMels, sampleRate: f.SampleRate}
	if s.vocoder != nil {
		m.sampleRate = s.vocoder.Spec.SampleRate
		return m, nil
	}
	var err error
	g := s.spec.Frames.GriffinLim
	m.griffinLim, err = griffinlim.New(f, griffinlim.Config{Iterations: g.Iterations, Momentum: g.Momentum, Threads: threads})
	return m, err
}

func (f frames) rate() int { return f.sampleRate }

func (f frames) unit() string { return "frame" }

// speak makes the waveform when all frames are known: each sample depends on all of them.
func (f frames) speak(ctx context.Context, voice *Voice, tokens []int32, chosen sampling.Settings, emit func([]float32) error) (Spoken, error) {
	all, spoken, err := f.decode(ctx, voice, tokens)
	if err != nil {
		return spoken, err
	}
	wave, err := f.waveform(ctx, all, chosen)
	if err != nil {
		return spoken, err
	}
	return spoken, emit(wave)
}

// decode predicts the frames of a text.
func (f frames) decode(ctx context.Context, voice *Voice, tokens []int32) (all []float32, spoken Spoken, err error) {
	d := f.decoding(manifest.TensorFrames, manifest.TensorStop)
	defer d.close()
	if err = d.begin(voice, tokens); err != nil {
		return nil, spoken, err
	}
	for runs := 1; ; runs++ {
		made, stop := d.made[manifest.TensorFrames], float64(d.made[manifest.TensorStop][0])
		for _, x := range append(slices.Clip(made), float32(stop)) {
			if x-x != 0 {
				return nil, spoken, fmt.Errorf("frame %d: %w", spoken.Length+1, errFrame)
			}
		}
		all = append(all, made...)
		spoken.Length += len(made) / f.bands
		if 1/(1+math.Exp(-stop)) >= f.spec.Frames.Stop {
			return all, spoken, nil
		}
		if runs == f.spec.Longest {
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
