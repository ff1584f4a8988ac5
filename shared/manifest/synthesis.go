package manifest

import (
	"fmt"
	"slices"
)

// Synthesis says how the inference graphs of a bundle speak (docs/synthesize.md): numbers that are in no graph. It has
// Codes or Frames: what the model predicts.
type Synthesis struct {
	// Longest is the largest number of codes of a text, or of runs that predict frames.
	Longest   int       `json:"longest"`
	Reference Reference `json:"reference,omitzero"`
	Codes     *Codes    `json:"codes,omitempty"`
	Frames    *Frames   `json:"frames,omitempty"`
}

// Codes is a model that chooses one code after the other.
type Codes struct {
	// Stop is the code that ends a text.
	Stop int `json:"stop"`
	// Prompt are codes that the repetition penalty counts as chosen from the beginning.
	Prompt []int `json:"prompt,omitempty"`
	// Vocoder says how the vocoder may be run on a part of the latents.
	Vocoder  Windows  `json:"vocoder"`
	Sampling Sampling `json:"sampling"`
}

// Frames is a model that predicts frames of a spectrogram one after the other.
type Frames struct {
	// Stop is the probability of the end from which on a frame is the last one.
	Stop float64 `json:"stop"`
	// GriffinLim makes the waveform if the bundle has no vocoder.
	GriffinLim *GriffinLim `json:"griffin_lim,omitempty"`
}

// GriffinLim are the settings of that algorithm.
type GriffinLim struct {
	Iterations int     `json:"iterations"`
	Momentum   float64 `json:"momentum"`
}

// Windows says what the waveform of a part of the latents has in common with that of all.
type Windows struct {
	// Context is the number of latents before and after a sample that it depends on.
	Context int `json:"context"`
	// Latents is what the first latent of a part has to be a multiple of. So many latents are Samples of the waveform.
	Latents int `json:"latents"`
	Samples int `json:"samples"`
}

// Reference says what of the reference clips is heard, in seconds: the beginning of each for the speaker, and the
// beginning of all together for the voice, in chunks of equal length. A last chunk that is shorter than Least is left
// out, and a clip that is shorter is refused.
type Reference struct {
	Speaker float64 `json:"speaker"`
	Voice   float64 `json:"voice"`
	Chunk   float64 `json:"chunk"`
	Least   float64 `json:"least"`
}

// Sampling are the defaults of the flags of the same names.
type Sampling struct {
	Temperature       float64 `json:"temperature"`
	TopK              int     `json:"top_k"`
	TopP              float64 `json:"top_p"`
	RepetitionPenalty float64 `json:"repetition_penalty"`
}

// checkSynthesis checks the graphs that speak, and the numbers that depend on them.
func (b *Bundle) checkSynthesis() error {
	s := b.Synthesis
	if s == nil {
		return nil
	}
	speech, err := b.speech()
	if err != nil {
		return err
	}
	if s.Frames != nil {
		return s.Frames.check(b.Features, &speech, s.Reference)
	}
	for _, code := range append(slices.Clone(s.Codes.Prompt), s.Codes.Stop) {
		if codes := speech.numbers[codesDim].value; code >= codes {
			return fmt.Errorf("there is no code %d: %s has %d", code, TensorLogits, codes)
		}
	}
	return s.Reference.check(min(speech.graphs[GraphSpeaker].SampleRate,
		speech.graphs[GraphConditioningMel].SampleRate))
}

// check checks what the feature contract decides about frames, and that they become a waveform.
func (f *Frames) check(features Features, s *speech, r Reference) error {
	if bands := s.numbers[bandsDim]; bands.value != features.NMels {
		return fmt.Errorf("%s has %s = %d, and the feature contract n_mels = %d", bands.of, bandsDim, bands.value,
			features.NMels)
	}
	if _, ok := s.graphs[GraphVocoder]; ok == (f.GriffinLim != nil) {
		return fmt.Errorf("synthesis.frames: either an inference graph %s or griffin_lim makes the waveform",
			GraphVocoder)
	}
	if _, ok := s.graphs[GraphConditioning]; !ok {
		return nil
	}
	return r.check(features.SampleRate)
}

// check checks that something can be heard at the sample rate. A chunk of no sample would never end.
func (r Reference) check(rate int) error {
	for _, length := range []struct {
		key   string
		value float64
	}{{"speaker", r.Speaker}, {"voice", r.Voice}, {"chunk", r.Chunk}} {
		if length.value < r.Least {
			return fmt.Errorf("synthesis.reference: %s is %g s, shorter than least, %g s", length.key, length.value,
				r.Least)
		}
	}
	if r.Least*float64(rate) < 1 {
		return fmt.Errorf("synthesis.reference: least is %g s, shorter than a sample at %d Hz", r.Least, rate)
	}
	return nil
}
