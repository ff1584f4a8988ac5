// Package synthesize speaks texts with the inference graphs of a bundle (docs/synthesize.md): a voice from reference
// clips, the codes or the frames of a text one by one, and a waveform of them.
package synthesize

import (
	"context"
	"fmt"

	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
)

// Speaker has the graphs of a bundle that speak. Those that it does not have are nil.
type Speaker struct {
	// Made, unless nil, is called while a text is spoken, with the number of units that the model has made of it.
	Made func(units int)

	spec *manifest.Synthesis
	kind kind

	conditioningMel, speaker, conditioning, prefill, step, vocoder *inference.Graph

	mel *mel.Extractor // what conditioning takes if there is no conditioningMel
}

// kind is what differs between models of codes and models of frames.
type kind interface {
	// rate is the sample rate of the speech, in Hz.
	rate() int
	// unit names what the model makes one by one.
	unit() string
	// units is how many of them so many seconds have at most, 1 at least.
	units(seconds float64) int
	// rehearse is Speaker.Rehearse for the tokens of a text.
	rehearse(ctx context.Context, voice *Voice, tokens []int32, longest int) (Spoken, error)
	// warm is Speaker.Warm for the tokens of a text.
	warm(ctx context.Context, voice *Voice, tokens []int32) error
	// speak is Speaker.Speak for a largest number of units.
	speak(
		ctx context.Context, voice *Voice, tokens []int32, longest int, chosen sampling.Settings,
		emit func([]float32) error,
	) (Spoken, error)
}

// NewSpeaker opens the graphs. It ends early with the cause of ctx.
func NewSpeaker(ctx context.Context, spec *manifest.Synthesis, runtime *inference.Runtime) (*Speaker, error) {
	s := &Speaker{spec: spec}
	bundle := runtime.Bundle.Manifest
	for _, g := range []struct {
		name string
		to   **inference.Graph
	}{
		{manifest.GraphConditioningMel, &s.conditioningMel}, {manifest.GraphSpeaker, &s.speaker},
		{manifest.GraphConditioning, &s.conditioning}, {manifest.GraphPrefill, &s.prefill},
		{manifest.GraphStep, &s.step}, {manifest.GraphVocoder, &s.vocoder},
	} {
		if !bundle.Speaks(g.name) {
			continue
		}
		var err error
		if *g.to, err = runtime.Open(ctx, g.name); err != nil {
			return nil, err
		}
	}
	if spec.Frames == nil {
		s.kind = codes{s}
		return s, nil
	}
	var err error
	if s.mel, err = mel.New(bundle.Features); err != nil {
		return nil, err
	}
	s.kind, err = newFrames(s, bundle.Features, runtime.Threads)
	return s, err
}

// made reports that so many units of a text have been made.
func (s *Speaker) made(units int) {
	if s.Made != nil {
		s.Made(units)
	}
}

// Rate is the sample rate of the speech, in Hz.
func (s *Speaker) Rate() int { return s.kind.rate() }

// Unit names what the model makes one by one, such as "code".
func (s *Speaker) Unit() string { return s.kind.unit() }

// Voiced reports whether the model speaks in the voice of clips.
func (s *Speaker) Voiced() bool { return s.conditioning != nil }

// Spoken says how a text was spoken.
type Spoken struct {
	// Length is the number of units.
	Length int
	// Cut says that the model did not end by itself.
	Cut bool
}

// Speak speaks the tokens of a text in a largest number of units, and calls emit with each part of the waveform as soon
// as it is final.
func (s *Speaker) Speak(
	ctx context.Context, voice *Voice, tokens []int32, longest int, chosen sampling.Settings,
	emit func([]float32) error,
) (Spoken, error) {
	return s.kind.speak(ctx, voice, tokens, longest, chosen, emit)
}

// Rehearse speaks the longest part of the texts as long as the bundle and the limits of the texts allow, whatever the
// weights are, without a sound: so the device has the memory for whatever is spoken of them.
func (s *Speaker) Rehearse(ctx context.Context, voice *Voice, texts ...Text) error {
	var longest []int32
	units := 1
	for _, text := range texts {
		for _, part := range text.parts {
			if len(part) > len(longest) {
				longest = part
			}
		}
		units = max(units, s.most(text.limit))
	}
	_, err := s.kind.rehearse(ctx, voice, longest, units)
	return err
}

// most is the largest number of units of a part in so many seconds; 0 means no limit but the bundle's.
func (s *Speaker) most(seconds float64) int {
	if seconds == 0 {
		return s.spec.Longest
	}
	return min(s.spec.Longest, s.kind.units(seconds))
}

// Warm speaks the beginning of a text without a sound. So what a GPU's libraries prepare for their first run is done
// before somebody waits for a sound.
func (s *Speaker) Warm(ctx context.Context, voice *Voice, text Text) error {
	return s.kind.warm(ctx, voice, text.parts[0])
}

// one returns the only value of a run.
func one(g *inference.Graph, given inference.Values, name string) ([]float32, []int, error) {
	results, err := g.Run(given, name)
	if err != nil {
		return nil, nil, err
	}
	defer results.Close()
	v, ok := results[name]
	if !ok {
		return nil, nil, fmt.Errorf("%s has no output %q", g.Spec.Name, name)
	}
	return append([]float32(nil), v.Floats()...), append([]int(nil), v.Shape()...), nil
}
