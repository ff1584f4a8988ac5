package manifest

import (
	"fmt"
	"slices"
)

// Synthesis says how the inference graphs of a bundle speak (docs/synthesize.md): numbers that are in no graph.
type Synthesis struct {
	// Stop is the code that ends a text.
	Stop int `json:"stop"`
	// Longest is the largest number of codes of a text.
	Longest int `json:"longest"`
	// Prompt are codes that the repetition penalty counts as chosen from the beginning.
	Prompt []int `json:"prompt,omitempty"`
	// Vocoder says how the vocoder may be run on a part of the latents.
	Vocoder   Windows   `json:"vocoder"`
	Reference Reference `json:"reference"`
	Sampling  Sampling  `json:"sampling"`
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
// beginning of all together for the voice, in chunks of equal length. A last chunk that is shorter than Least is left out.
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

// The names of the inference graphs that speak, and of their tensors that the host knows.
const (
	GraphConditioningMel = "conditioning_mel"
	GraphSpeaker         = "speaker"
	GraphConditioning    = "conditioning"
	GraphPrefill         = "prefill"
	GraphStep            = "step"
	GraphVocoder         = "vocoder"

	TensorWaveform        = "waveform"
	TensorWaveformLengths = "waveform_lengths"
	TensorVoice           = "voice"
	TensorText            = "tokens"
	TensorTextLengths     = "token_lengths"
	TensorCode            = "code"
	TensorPosition        = "position"
	TensorLogits          = "logits"
	TensorLatent          = "latent"
	TensorLatents         = "latents"
)

// speaking lists what each graph that speaks must take and return.
var speaking = []struct {
	name, kind     string
	takes, returns []string
}{
	{GraphConditioningMel, InferenceStage, []string{TensorWaveform, TensorWaveformLengths}, nil},
	{GraphSpeaker, InferenceStage, []string{TensorWaveform}, []string{GraphSpeaker}},
	{GraphConditioning, InferenceDecode, nil, []string{TensorVoice}},
	{GraphPrefill, InferenceDecode, []string{TensorVoice, TensorText, TensorTextLengths}, []string{TensorLogits, TensorLatent}},
	{GraphStep, InferenceDecode, []string{TensorCode, TensorPosition}, []string{TensorLogits, TensorLatent}},
	{GraphVocoder, InferenceVocoder, []string{TensorLatents, GraphSpeaker}, []string{TensorWaveform}},
}

// checkSynthesis checks that the graphs exist, and that each gets all of its inputs from the host or from another one.
func (b *Bundle) checkSynthesis() error {
	s := b.Synthesis
	if s == nil {
		return nil
	}
	graphs := map[string]InferenceGraph{}
	for _, want := range speaking {
		g, ok := b.InferenceGraph(want.name)
		if !ok || g.Kind != want.kind {
			return fmt.Errorf("there is no inference graph %s of kind %s", want.name, want.kind)
		}
		for _, name := range want.takes {
			if !names(g.Inputs, name) {
				return fmt.Errorf("the inference graph %s has no input %q", g.Name, name)
			}
		}
		for _, name := range want.returns {
			if !names(g.Outputs, name) {
				return fmt.Errorf("the inference graph %s has no output %q", g.Name, name)
			}
		}
		graphs[g.Name] = g
	}
	mel, conditioning, prefill, step := graphs[GraphConditioningMel], graphs[GraphConditioning], graphs[GraphPrefill], graphs[GraphStep]
	for _, in := range conditioning.Inputs {
		if !names(mel.Outputs, in.Name) {
			return fmt.Errorf("the input %q of %s is no output of %s", in.Name, GraphConditioning, GraphConditioningMel)
		}
	}
	for _, in := range step.Inputs {
		if in.Name == TensorCode || in.Name == TensorPosition {
			continue
		}
		if from := step.Source(in.Name); !names(prefill.Outputs, from) {
			return fmt.Errorf("the input %q of %s is no output of %s: %q would be", in.Name, GraphStep, GraphPrefill, from)
		}
	}
	logits, _ := step.Tensor(TensorLogits)
	if len(logits.Shape) != 2 {
		return fmt.Errorf("%s of %s is not of rows and codes", logits, GraphStep)
	}
	codes := logits.Shape[len(logits.Shape)-1].Size
	for _, code := range append(slices.Clone(s.Prompt), s.Stop) {
		if code >= codes {
			return fmt.Errorf("there is no code %d: %s has %d", code, TensorLogits, codes)
		}
	}
	return nil
}

func names(list []TensorSpec, name string) bool {
	return slices.ContainsFunc(list, func(t TensorSpec) bool { return t.Name == name })
}

// Takes reports whether the one who runs the graph gives it an input of that name.
func (g *InferenceGraph) Takes(name string) bool { return names(g.Inputs, name) }

// Source returns the output that an input takes in the next run: the one that feeds it, or the one of its name.
func (g *InferenceGraph) Source(input string) string {
	for _, t := range g.Outputs {
		if t.Feeds == input {
			return t.Name
		}
	}
	return input
}
