package manifest

import (
	"strings"
	"testing"
)

// spoken is a bundle with the graphs that speak, and nothing else that the check reads.
func spoken() *Bundle {
	tensor := func(name string, dtype DType, dims ...any) TensorSpec {
		t := TensorSpec{Name: name, DType: dtype}
		for _, d := range dims {
			switch d := d.(type) {
			case int:
				t.Shape = append(t.Shape, Fixed(d))
			case string:
				t.Shape = append(t.Shape, Sym(d))
			}
		}
		return t
	}
	feeds := func(name string, t TensorSpec) TensorSpec { t.Feeds = name; return t }
	wave, lengths := tensor("waveform", F32, "B", "T_wav"), tensor("waveform_lengths", I32, "B")
	mel, voice, speaker := tensor("mel", F32, "B", "T_cond", 80), tensor("voice", F32, "B", 4, 16),
		tensor("speaker", F32, "B", 5)
	logits, latent := tensor("logits", F32, "B", 8), tensor("latent", F32, "B", 16)
	keys, values, memory := tensor("keys", F32, "B", 2, "T", 8), tensor("values", F32, "B", 2, "T", 8),
		tensor("memory", I64, 1, "T_text")
	return &Bundle{
		Synthesis: &Synthesis{
			Codes:     &Codes{Stop: 7, Prompt: []int{0, 1}},
			Reference: Reference{Speaker: 10, Voice: 12, Chunk: 4, Least: 0.33},
		},
		Inference: []InferenceGraph{
			{
				Name: "conditioning_mel", Kind: "stage", SampleRate: 22050, Inputs: []TensorSpec{wave, lengths},
				Outputs: []TensorSpec{mel},
			},
			{
				Name: "speaker", Kind: "stage", SampleRate: 16000, Inputs: []TensorSpec{wave},
				Outputs: []TensorSpec{speaker},
			},
			{Name: "conditioning", Kind: "decode", Inputs: []TensorSpec{mel}, Outputs: []TensorSpec{voice}},
			{
				Name: "prefill", Kind: "decode",
				Inputs:  []TensorSpec{voice, tensor("tokens", I32, "B", "T_text"), tensor("token_lengths", I32, "B")},
				Outputs: []TensorSpec{logits, latent, keys, values, memory},
			},
			{
				Name: "step", Kind: "decode",
				Inputs: []TensorSpec{
					tensor("code", I32, "B"), tensor("position", I32, "B"),
					tensor("past_keys", F32, "B", 2, "T_past", 8), tensor("past_values", F32, "B", 2, "T_past", 8),
					tensor("memory", I64, "B", "T_memory"),
				},
				Outputs: []TensorSpec{logits, latent, feeds("past_keys", keys), feeds("past_values", values)},
			},
			{
				Name: "vocoder", Kind: "vocoder", SampleRate: 24000,
				Inputs: []TensorSpec{tensor("latents", F32, "B", "T_latent", 16), speaker}, Outputs: []TensorSpec{wave},
			},
		},
	}
}

// spokenFrames is the same for a model that predicts two frames in a run.
func spokenFrames() *Bundle {
	tensor := func(name string, dtype DType, dims ...Dim) TensorSpec {
		return TensorSpec{Name: name, DType: dtype, Shape: dims}
	}
	b, mel := Sym("B"), tensor("frames", F32, Sym("B"), Fixed(2), Fixed(80))
	stop, voice, memory := tensor("stop", F32, b), tensor("voice", F32, b, Fixed(16)),
		tensor("memory", F32, b, Sym("T_text"), Fixed(8))
	fed := mel
	fed.Feeds = "previous"
	return &Bundle{
		Features: Features{NMels: 80, SampleRate: 22050},
		Synthesis: &Synthesis{
			Longest: 100, Reference: Reference{Speaker: 10, Voice: 12, Chunk: 4, Least: 0.33},
			Frames: &Frames{Stop: 0.5, GriffinLim: &GriffinLim{}},
		},
		Inference: []InferenceGraph{
			{
				Name: "conditioning", Kind: "decode", Outputs: []TensorSpec{voice},
				Inputs: []TensorSpec{tensor("conditioning_mel", F32, b, Sym("T"), Fixed(80)), tensor(
					"conditioning_lengths", I32, b)},
			},
			{
				Name: "prefill", Kind: "decode",
				Inputs:  []TensorSpec{voice, tensor("tokens", I32, b, Sym("T_text")), tensor("token_lengths", I32, b)},
				Outputs: []TensorSpec{mel, stop, memory},
			},
			{
				Name: "step", Kind: "decode",
				Inputs:  []TensorSpec{tensor("previous", F32, b, Fixed(2), Fixed(80)), memory},
				Outputs: []TensorSpec{fed, stop},
			},
		},
	}
}

func TestSynthesisOfFrames(t *testing.T) {
	b := spokenFrames()
	if err := b.checkSynthesis(); err != nil {
		t.Fatal(err)
	}
	vocoder := InferenceGraph{
		Name: "vocoder", Kind: "vocoder", SampleRate: 22050,
		Inputs:  []TensorSpec{{Name: "frames", DType: F32, Shape: Shape{Sym("B"), Sym("T"), Fixed(80)}}},
		Outputs: []TensorSpec{{Name: "waveform", DType: F32, Shape: Shape{Sym("B"), Sym("T_wav")}}},
	}
	b.Inference, b.Synthesis.Frames.GriffinLim = append(b.Inference, vocoder), nil
	if err := b.checkSynthesis(); err != nil || !b.Speaks("vocoder") || b.Speaks("speaker") {
		t.Errorf("with a vocoder: %v", err)
	}
	b = spokenFrames()
	b.Inference, b.Inference[1].Inputs = b.Inference[1:], b.Inference[1].Inputs[1:]
	if err := b.checkSynthesis(); err != nil || b.Speaks("conditioning") {
		t.Errorf("without a voice: %v", err)
	}
	for want, change := range map[string]func(*Bundle){
		"there is no inference graph step of kind decode": func(b *Bundle) {
			b.Inference = b.Inference[:2]
		},
		`the inference graph step has no output "stop"`: func(b *Bundle) {
			b.Inference[2].Outputs = b.Inference[2].Outputs[:1]
		},
		"frames of prefill has bands = 80, and conditioning_mel of conditioning": func(b *Bundle) {
			b.Inference[0].Inputs[0].Shape[2] = Fixed(40)
		},
		"frames of step has run = 1, and frames of prefill has 2": func(b *Bundle) {
			b.Inference[2].Outputs[0].Shape = Shape{Sym("B"), Fixed(1), Fixed(80)}
		},
		"has bands = 80, and the feature contract n_mels = 100": func(b *Bundle) {
			b.Features.NMels = 100
		},
		"either an inference graph vocoder or griffin_lim makes the waveform": func(b *Bundle) {
			b.Synthesis.Frames.GriffinLim = nil
		},
		`gives the inference graph prefill its input "voice": there is no cond`: func(b *Bundle) {
			b.Inference = b.Inference[1:]
		},
		`the inference graph prefill has no input "voice"`: func(b *Bundle) {
			b.Inference[1].Inputs = b.Inference[1].Inputs[1:]
		},
		`nothing gives the inference graph conditioning its input "pitch"`: func(b *Bundle) {
			b.Inference[0].Inputs = append(b.Inference[0].Inputs, TensorSpec{Name: "pitch"})
		},
		`the input "previous" of step is no output of prefill`: func(b *Bundle) {
			b.Inference[2].Outputs[0].Feeds = ""
		},
		"synthesis.reference: chunk is 0.1 s": func(b *Bundle) { b.Synthesis.Reference.Chunk = 0.1 },
	} {
		b := spokenFrames()
		change(b)
		if err := b.checkSynthesis(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSynthesis(t *testing.T) {
	if err := spoken().checkSynthesis(); err != nil {
		t.Fatal(err)
	}
	lengths := func(b *Bundle) {
		b.Inference[1].Inputs = append(b.Inference[1].Inputs, b.Inference[0].Inputs[1])
	}
	b := spoken()
	if lengths(b); b.checkSynthesis() != nil {
		t.Errorf("the speaker's graph takes lengths: %v", b.checkSynthesis())
	}
	for want, change := range map[string]func(*Bundle){
		"there is no inference graph vocoder of kind vocoder": func(b *Bundle) {
			b.Inference = b.Inference[:5]
		},
		"there is no inference graph speaker of kind stage": func(b *Bundle) {
			b.Inference[1].Kind = "decode"
		},
		`the inference graph prefill has no input "tokens"`: func(b *Bundle) {
			b.Inference[3].Inputs[1].Name = "text"
		},
		`the inference graph step has no output "latent"`: func(b *Bundle) {
			b.Inference[4].Outputs[1].Name = "hidden"
		},
		`the input "mel" of conditioning is no output of conditioning_mel`: func(b *Bundle) {
			b.Inference[0].Outputs[0].Name = "bands"
		},
		`the input "past_keys" of step is no output of prefill: "keys" `: func(b *Bundle) {
			b.Inference[3].Outputs[2].Name = "key"
		},
		`the input "memory" of step is no output of prefill`: func(b *Bundle) {
			b.Inference[3].Outputs = b.Inference[3].Outputs[:4]
		},
		"there is no code 8: logits has 8": func(b *Bundle) {
			b.Synthesis.Codes.Stop = 8
		},
		"there is no code 9: logits has 8": func(b *Bundle) {
			b.Synthesis.Codes.Prompt[1] = 9
		},
		"the output logits f32[] of the inference graph prefill is not log": func(b *Bundle) {
			b.Inference[3].Outputs[0].Shape = nil
		},
		// Types and ranks of what the host gives and gets.
		"the input waveform f64[B,T_wav] of the inference graph conditioning_mel is not waveform f32[B,T]": func(
			b *Bundle,
		) {
			b.Inference[0].Inputs[0].DType = F64
		},
		"the input waveform_lengths i64[B] of the inference graph speaker is not waveform_lengths i32[B]": func(
			b *Bundle,
		) {
			lengths(b)
			b.Inference[1].Inputs[1].DType = I64
		},
		"the input tokens i64[B,T_text] of the inference graph prefill is not tokens i32[B,T]": func(
			b *Bundle,
		) {
			b.Inference[3].Inputs[1].DType = I64
		},
		"the input tokens i32[B,5] of the inference graph prefill is not tokens i32[B,T]": func(
			b *Bundle,
		) {
			b.Inference[3].Inputs[1].Shape[1] = Fixed(5)
		},
		"the input code i32[3] of the inference graph step is not code i32[B]": func(
			b *Bundle,
		) {
			b.Inference[4].Inputs[0].Shape[0] = Fixed(3)
		},
		"the output latent f32[B,T] of the inference graph step is not latent f32[B,width]": func(
			b *Bundle,
		) {
			b.Inference[4].Outputs[1].Shape = Shape{Sym("B"), Sym("T")}
		},
		"the output waveform f32[B,1,T] of the inference graph vocoder is not waveform f32[B,T]": func(
			b *Bundle,
		) {
			b.Inference[5].Outputs[0].Shape = Shape{Sym("B"), Fixed(1), Sym("T")}
		},
		"the output voice f32[B,T,16] of the inference graph conditioning is not f32 with rows and then": func(
			b *Bundle,
		) {
			b.Inference[2].Outputs[0].Shape = Shape{Sym("B"), Sym("T"), Fixed(16)}
		},
		"the output speaker f16[B,5] of the inference graph speaker is not f32 with rows and then fixed": func(
			b *Bundle,
		) {
			b.Inference[1].Outputs[0].DType = F16
		},
		// Inputs that nothing gives.
		`nothing gives the inference graph prefill its input "seed"`: func(b *Bundle) {
			b.Inference[3].Inputs = append(b.Inference[3].Inputs, TensorSpec{Name: "seed"})
		},
		`nothing gives the inference graph vocoder its input "codes"`: func(b *Bundle) {
			b.Inference[5].Inputs = append(b.Inference[5].Inputs, TensorSpec{Name: "codes"})
		},
		`nothing gives the inference graph speaker its input "volume"`: func(b *Bundle) {
			b.Inference[1].Inputs = append(b.Inference[1].Inputs, TensorSpec{Name: "volume"})
		},
		// What one graph returns and another takes.
		"latents of vocoder has width = 12, and latent of prefill has 16": func(b *Bundle) {
			b.Inference[5].Inputs[0].Shape = Shape{Sym("B"), Sym("T"), Fixed(12)}
		},
		"logits of step has codes = 9, and logits of prefill has 8": func(b *Bundle) {
			b.Inference[4].Outputs[0].Shape = Shape{Sym("B"), Fixed(9)}
		},
		"conditioning returns voice f32[B,4,16], and prefill takes voice f32[B,4,12]": func(b *Bundle) {
			b.Inference[3].Inputs[0].Shape = Shape{Sym("B"), Fixed(4), Fixed(12)}
		},
		"speaker returns speaker f32[B,5], and vocoder takes speaker f32[B,5,1]": func(b *Bundle) {
			b.Inference[5].Inputs[1].Shape = Shape{Sym("B"), Fixed(5), Fixed(1)}
		},
		"conditioning_mel returns mel f32[B,T_cond,80], and conditioning takes mel f64": func(b *Bundle) {
			b.Inference[2].Inputs[0].DType = F64
		},
		"prefill returns memory i64[1,T_text], and step takes memory i32[B,T_memory]": func(b *Bundle) {
			b.Inference[4].Inputs[4].DType = I32
		},
		"prefill returns keys f32[B,2,T,9], and step takes past_keys f32[B,2,T_past,8]": func(b *Bundle) {
			b.Inference[3].Outputs[2].Shape = Shape{Sym("B"), Fixed(2), Sym("T"), Fixed(9)}
		},
		"prefill returns memory i64[1,T_text], and step takes memory i64[B,9]": func(b *Bundle) {
			b.Inference[4].Inputs[4].Shape = Shape{Sym("B"), Fixed(9)}
		},
		`T_past of step is two sizes: U of prefill in "keys", and T in "values"`: func(b *Bundle) {
			b.Inference[3].Outputs[2].Shape = Shape{Sym("B"), Fixed(2), Sym("U"), Fixed(8)}
		},
		`T_past of step is two sizes: T of step in "keys", and U in "values"`: func(b *Bundle) {
			b.Inference[4].Outputs[3].Shape = Shape{Sym("B"), Fixed(2), Sym("U"), Fixed(8)}
		},
		"synthesis.reference: chunk is 1e-09 s, shorter than least, 0.33 s": func(b *Bundle) {
			b.Synthesis.Reference.Chunk = 1e-9
		},
		"synthesis.reference: voice is 0.1 s, shorter than least, 0.33 s": func(b *Bundle) {
			b.Synthesis.Reference.Voice = 0.1
		},
		"synthesis.reference: speaker is 0.2 s, shorter than least, 0.33 s": func(b *Bundle) {
			b.Synthesis.Reference.Speaker = 0.2
		},
		"synthesis.reference: least is 1e-09 s, shorter than a sample at 16000 Hz": func(b *Bundle) {
			b.Synthesis.Reference.Chunk, b.Synthesis.Reference.Least = 1e-9, 1e-9
		},
	} {
		b := spoken()
		change(b)
		if err := b.checkSynthesis(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
