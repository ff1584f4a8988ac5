// Package synthesize speaks texts with the inference graphs of a bundle (docs/synthesize.md): a voice from reference
// clips, the codes of a text one by one, and a waveform of what the model returns with them, while it goes on.
package synthesize

import (
	"context"
	"fmt"

	"github.com/xtts-host/xtts-host/host/inference"
	"github.com/xtts-host/xtts-host/host/synthesize/sampling"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Speaker has the graphs of a bundle that speak.
type Speaker struct {
	spec *manifest.Synthesis

	conditioningMel, speaker, conditioning, prefill, step, vocoder *inference.Graph
}

// NewSpeaker opens the graphs. It ends early with the cause of ctx.
func NewSpeaker(ctx context.Context, spec *manifest.Synthesis, runtime *inference.Runtime) (*Speaker, error) {
	s := &Speaker{spec: spec}
	for _, g := range []struct {
		name string
		to   **inference.Graph
	}{
		{manifest.GraphConditioningMel, &s.conditioningMel}, {manifest.GraphSpeaker, &s.speaker}, {manifest.GraphConditioning, &s.conditioning},
		{manifest.GraphPrefill, &s.prefill}, {manifest.GraphStep, &s.step}, {manifest.GraphVocoder, &s.vocoder},
	} {
		var err error
		if *g.to, err = runtime.Open(ctx, g.name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Rate is the sample rate of the speech, in Hz.
func (s *Speaker) Rate() int { return s.vocoder.Spec.SampleRate }

// Spoken says how a text was spoken.
type Spoken struct {
	Codes int
	// Cut says that the model did not end by itself.
	Cut bool
}

// Speak speaks the tokens of a text, and calls emit with each part of the waveform as soon as it is final.
func (s *Speaker) Speak(ctx context.Context, voice *Voice, tokens []int32, chosen sampling.Settings, emit func([]float32) error) (Spoken, error) {
	w := newWaveform(s, voice, emit)
	spoken, err := s.decode(ctx, voice, tokens, sampling.New(chosen, s.spec.Prompt), w.add)
	if err == nil {
		err = w.end()
	}
	return spoken, err
}

// decode chooses the codes of a text, and calls take with the latent of each, that of the code that ends it, too.
func (s *Speaker) decode(ctx context.Context, voice *Voice, tokens []int32, sampler *sampling.Sampler, take func([]float32) error) (spoken Spoken, err error) {
	d := decoding{speaker: s, cache: inference.Values{}}
	defer d.close()
	if err = d.begin(voice, tokens); err != nil {
		return spoken, err
	}
	for {
		code, err := sampler.Next(d.results[manifest.TensorLogits].Floats())
		if err != nil {
			return spoken, err
		}
		if err := take(d.results[manifest.TensorLatent].Floats()); err != nil {
			return spoken, err
		}
		if code == s.spec.Stop {
			return spoken, nil
		}
		if spoken.Codes++; spoken.Codes == s.spec.Longest {
			spoken.Cut = true
			return spoken, nil
		}
		if err := context.Cause(ctx); err != nil {
			return spoken, err
		}
		if err := d.next(code, spoken.Codes); err != nil {
			return spoken, err
		}
	}
}

// decoding is the state of the model within a text.
type decoding struct {
	speaker *Speaker
	results inference.Values // of the last run
	cache   inference.Values // by the inputs of the next one
}

// begin runs the text.
func (d *decoding) begin(voice *Voice, tokens []int32) error {
	text, err := inference.Integers(tokens, 1, len(tokens))
	if err != nil {
		return err
	}
	defer text.Close()
	length, err := inference.Integers([]int32{int32(len(tokens))}, 1)
	if err != nil {
		return err
	}
	defer length.Close()
	return d.run(d.speaker.prefill, inference.Values{
		manifest.TensorVoice: voice.voice, manifest.TensorText: text, manifest.TensorTextLengths: length,
	})
}

// next runs the model for a code.
func (d *decoding) next(code, position int) error {
	chosen, err := inference.Integers([]int32{int32(code)}, 1)
	if err != nil {
		return err
	}
	defer chosen.Close()
	at, err := inference.Integers([]int32{int32(position)}, 1)
	if err != nil {
		return err
	}
	defer at.Close()
	d.cache[manifest.TensorCode], d.cache[manifest.TensorPosition] = chosen, at
	defer delete(d.cache, manifest.TensorCode)
	defer delete(d.cache, manifest.TensorPosition)
	return d.run(d.speaker.step, d.cache)
}

// run runs a graph, and takes from its results what the next step needs.
func (d *decoding) run(g *inference.Graph, given inference.Values) error {
	results, err := g.Run(given, manifest.TensorLogits, manifest.TensorLatent)
	if err != nil {
		return err
	}
	step := &d.speaker.step.Spec
	for _, in := range step.Inputs {
		from := step.Source(in.Name)
		if made, ok := results[from]; ok {
			if before, ok := d.cache[in.Name]; ok {
				before.Close()
			}
			d.cache[in.Name] = made
			delete(results, from)
		}
	}
	d.results.Close()
	d.results = results
	return nil
}

func (d *decoding) close() {
	d.results.Close()
	d.cache.Close()
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
