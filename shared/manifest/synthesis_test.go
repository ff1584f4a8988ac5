package manifest

import (
	"strings"
	"testing"
)

// speech is a bundle with the graphs that speak, and nothing else that the check reads.
func speech() *Bundle {
	tensor := func(name string, shape ...Dim) TensorSpec { return TensorSpec{Name: name, Shape: shape} }
	rows := Dim{Symbol: "B"}
	return &Bundle{
		Synthesis: &Synthesis{Stop: 7, Prompt: []int{0, 1}},
		Inference: []InferenceGraph{
			{Name: "conditioning_mel", Kind: "stage", Inputs: []TensorSpec{tensor("waveform"), tensor("waveform_lengths")}, Outputs: []TensorSpec{tensor("mel")}},
			{Name: "speaker", Kind: "stage", Inputs: []TensorSpec{tensor("waveform")}, Outputs: []TensorSpec{tensor("speaker")}},
			{Name: "conditioning", Kind: "decode", Inputs: []TensorSpec{tensor("mel")}, Outputs: []TensorSpec{tensor("voice")}},
			{Name: "prefill", Kind: "decode", Inputs: []TensorSpec{tensor("voice"), tensor("tokens"), tensor("token_lengths")}, Outputs: []TensorSpec{tensor("logits"), tensor("latent"), tensor("keys"), tensor("memory")}},
			{
				Name: "step", Kind: "decode", Inputs: []TensorSpec{tensor("code"), tensor("position"), tensor("past"), tensor("memory")},
				Outputs: []TensorSpec{tensor("logits", rows, Dim{Size: 8}), tensor("latent"), {Name: "keys", Feeds: "past"}},
			},
			{Name: "vocoder", Kind: "vocoder", Inputs: []TensorSpec{tensor("latents"), tensor("speaker")}, Outputs: []TensorSpec{tensor("waveform")}},
		},
	}
}

func TestSynthesis(t *testing.T) {
	if err := speech().checkSynthesis(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Bundle){
		"there is no inference graph vocoder of kind vocoder":                   func(b *Bundle) { b.Inference = b.Inference[:5] },
		"there is no inference graph speaker of kind stage":                     func(b *Bundle) { b.Inference[1].Kind = "decode" },
		`the inference graph prefill has no input "tokens"`:                     func(b *Bundle) { b.Inference[3].Inputs[1].Name = "text" },
		`the inference graph step has no output "latent"`:                       func(b *Bundle) { b.Inference[4].Outputs[1].Name = "hidden" },
		`the input "mel" of conditioning is no output of conditioning_mel`:      func(b *Bundle) { b.Inference[0].Outputs[0].Name = "bands" },
		`the input "past" of step is no output of prefill: "keys" would be`:     func(b *Bundle) { b.Inference[3].Outputs[2].Name = "values" },
		`the input "memory" of step is no output of prefill: "memory" would be`: func(b *Bundle) { b.Inference[3].Outputs = b.Inference[3].Outputs[:3] },
		"there is no code 8: logits has 8":                                      func(b *Bundle) { b.Synthesis.Stop = 8 },
		"there is no code 9: logits has 8":                                      func(b *Bundle) { b.Synthesis.Prompt[1] = 9 },
		"logits of step is not of rows and codes":                               func(b *Bundle) { b.Inference[4].Outputs[0].Shape = nil },
	} {
		b := speech()
		change(b)
		if err := b.checkSynthesis(); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(want, "rows and codes") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
