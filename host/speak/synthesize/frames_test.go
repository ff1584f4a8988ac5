package synthesize

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// speakingFrames returns the default bundle, whose model predicts frames, and its speaker on the CPU with its initial
// weights. It ends a text after so many frames, if the model does not.
func speakingFrames(t *testing.T, longest int) (*inference.Runtime, *Speaker) {
	t.Helper()
	bundle, err := ortgraphs.Builtin("myxtts-nano", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bundle.Manifest.Synthesis.Longest = longest
	bundle.Manifest.Synthesis.Frames.Stop = 0.999
	bundle.Manifest.Synthesis.Frames.GriffinLim.Iterations = 2
	weights, err := bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Close() })
	runtime := inference.New(inference.Config{Bundle: bundle, Weights: weights, Device: new(device.Device), Threads: 2})
	t.Cleanup(func() { runtime.Close() })
	s, err := NewSpeaker(t.Context(), bundle.Manifest.Synthesis, runtime)
	if err != nil {
		t.Fatal(err)
	}
	return runtime, s
}

func listen(t *testing.T, s *Speaker) *Voice {
	t.Helper()
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.25, 22050, 1.5)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(voice.Close)
	return voice
}

var hello = []int32{40, 12, 7, 33, 5, 21, 9}

// TestFramesAreThoseOfTraining: given the frames that it has predicted as those to learn, the graph of the evaluation
// predicts the same ones, so that its loss is none.
func TestFramesAreThoseOfTraining(t *testing.T) {
	const count = 12
	runtime, s := speakingFrames(t, count)
	predicted, spoken, err := s.kind.(frames).decode(t.Context(), listen(t, s), hello, count, s.kind.(frames).ended)
	if err != nil || spoken != (Spoken{Length: count, Cut: true}) || len(predicted) != count*80 {
		t.Fatalf("%+v, %d values, %v", spoken, len(predicted), err)
	}
	tensor := func(name string, dtype manifest.DType, shape ...manifest.Dim) manifest.TensorSpec {
		return manifest.TensorSpec{Name: name, DType: dtype, Shape: shape}
	}
	m := runtime.Bundle.Manifest
	m.Inference = append(m.Inference, manifest.InferenceGraph{
		Name: "eval", File: "eval_model.onnx", Inputs: m.Inputs,
		Outputs: []manifest.TensorSpec{tensor("metric.mel_loss", manifest.F32)},
	})
	graph, err := runtime.Open(t.Context(), "eval")
	if err != nil {
		t.Fatal(err)
	}
	loss := func(target []float32) float32 {
		given := inference.Values{}
		add := func(v inference.Values, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for name, x := range v {
				given[name] = x
			}
		}
		// The voice is that of one chunk of a second and a half.
		reference, err := s.spectrogram(slices.Repeat([]float32{0.25}, seconds(1.5, 22050)))
		add(inference.Values{
			"reference_mel_spectrograms": reference["conditioning_mel"],
			"reference_mel_lengths":      reference["conditioning_lengths"],
		}, err)
		add(sequence("mel_spectrograms", "mel_lengths", target, count, 80))
		for _, name := range []string{"pitch", "energy"} {
			x, err := inference.Floats(make([]float32, count), 1, count)
			add(inference.Values{name: x}, err)
		}
		text, err := inference.Integers(hello, 1, len(hello))
		add(inference.Values{"text_sequences": text}, err)
		length, err := inference.Integers([]int32{int32(len(hello))}, 1)
		add(inference.Values{"text_lengths": length}, err)
		defer given.Close()
		x, _, err := one(graph, given, "metric.mel_loss")
		if err != nil {
			t.Fatal(err)
		}
		return x[0]
	}
	if own, other := loss(predicted), loss(make([]float32, len(predicted))); own > 1e-9 || other < 1e-3 {
		t.Errorf("the loss of its own frames is %g, that of others %g", own, other)
	} else {
		t.Logf("the loss of its own frames is %g, that of others %g", own, other)
	}
}

func TestSpeakFrames(t *testing.T) {
	_, s := speakingFrames(t, 30)
	if s.Rate() != 22050 || s.Unit() != "frame" || !s.Voiced() {
		t.Errorf("%d Hz, %s, voiced %v", s.Rate(), s.Unit(), s.Voiced())
	}
	voice := listen(t, s)
	speak := func(settings sampling.Settings) (wave []float32, spoken Spoken) {
		spoken, err := s.Speak(t.Context(), voice, hello, s.spec.Longest, settings,
			func(part []float32) error { wave = append(wave, part...); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return wave, spoken
	}
	wave, spoken := speak(sampling.Settings{Seed: 1})
	if spoken != (Spoken{Length: 30, Cut: true}) || len(wave) != 29*256 {
		t.Fatalf("%+v, %d samples", spoken, len(wave))
	}
	if again, _ := speak(sampling.Settings{Seed: 1}); !slices.Equal(again, wave) {
		t.Error("equal seeds gave other samples")
	}
	if other, _ := speak(sampling.Settings{Seed: 2}); slices.Equal(other, wave) {
		t.Error("another seed gave the same samples")
	}
	s.spec.Frames.Stop = 1e-6
	if wave, spoken = speak(sampling.Settings{}); spoken != (Spoken{Length: 1}) || len(wave) != 0 {
		t.Errorf("a model that ends at once: %+v, %d samples", spoken, len(wave))
	}
}

// TestVocoderOfFrames: a bundle's vocoder gets the frames as the model made them. This one makes a sample of each
// value.
func TestVocoderOfFrames(t *testing.T) {
	runtime, s := speakingFrames(t, 5)
	voice := listen(t, s)
	want, _, err := s.kind.(frames).decode(t.Context(), voice, hello, s.spec.Longest, s.kind.(frames).ended)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string, dims ...string) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim,
				&onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}})
		}
		tensor := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
		return &onnxpb.ValueInfoProto{
			Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: tensor}},
		}
	}
	model, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(10), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("vocoder"), Input: []*onnxpb.ValueInfoProto{value("frames", "B", "T", "bands")},
			Output: []*onnxpb.ValueInfoProto{value("waveform", "B", "T_wav")},
			// axis 1
			Node: []*onnxpb.NodeProto{
				{OpType: proto.String("Flatten"), Input: []string{"frames"}, Output: []string{"waveform"}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runtime.Bundle.Path("vocoder.onnx"), model, 0o666); err != nil {
		t.Fatal(err)
	}
	tensor := func(name string, dims ...manifest.Dim) []manifest.TensorSpec {
		return []manifest.TensorSpec{{Name: name, DType: manifest.F32, Shape: dims}}
	}
	m := runtime.Bundle.Manifest
	m.Inference = append(m.Inference, manifest.InferenceGraph{
		Name: "vocoder", Kind: manifest.InferenceVocoder, File: "vocoder.onnx", SampleRate: 24000,
		Inputs:  tensor("frames", manifest.Sym("B"), manifest.Sym("T"), manifest.Fixed(80)),
		Outputs: tensor("waveform", manifest.Sym("B"), manifest.Sym("T_wav")),
	})
	m.Synthesis.Frames.GriffinLim = nil
	if s, err = NewSpeaker(t.Context(), m.Synthesis, runtime); err != nil {
		t.Fatal(err)
	}
	var wave []float32
	_, err = s.Speak(t.Context(), voice, hello, s.spec.Longest, sampling.Settings{},
		func(part []float32) error { wave = append(wave, part...); return nil })
	if err != nil || !slices.Equal(wave, want) || s.Rate() != 24000 {
		t.Errorf("%d samples at %d Hz, want %d; %v", len(wave), s.Rate(), len(want), err)
	}
}

func TestSpeakFramesFails(t *testing.T) {
	_, s := speakingFrames(t, 30)
	voice := listen(t, s)
	emit := func([]float32) error { t.Error("emitted"); return nil }
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(os.ErrDeadlineExceeded)
	if _, err := s.Speak(ctx, voice, hello, s.spec.Longest, sampling.Settings{}, emit); err != os.ErrDeadlineExceeded {
		t.Error(err)
	}
	nan := voice.voice.Floats()
	nan[0] = (nan[0] - nan[0]) / (nan[0] - nan[0])
	_, err := s.Speak(t.Context(), voice, hello, s.spec.Longest, sampling.Settings{}, emit)
	if !errors.Is(err, errFrame) || !strings.HasPrefix(err.Error(), "frame 1: ") ||
		!strings.HasPrefix(hint.Of(broken(err)), "training has damaged") {
		t.Errorf("%v (%s)", err, hint.Of(broken(err)))
	}
}

// TestSettingsOfFrames: flags that mean nothing to a model of frames are refused.
func TestSettingsOfFrames(t *testing.T) {
	b := &manifest.Bundle{Name: "tacotron", Synthesis: &manifest.Synthesis{Frames: &manifest.Frames{Stop: 0.5}}}
	o := Options{Seed: 7, Given: func(string) bool { return false }}
	if s, err := o.settings(b.Synthesis); err != nil || s.Seed != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	o.Given = func(flag string) bool { return flag == "top-p" }
	if _, err := o.settings(b.Synthesis); err == nil ||
		err.Error() != "--top-p chooses codes, and the model predicts frames" {
		t.Error(err)
	}
	if err := o.voiced(b); err != nil {
		t.Error(err)
	}
	o.Speakers = []string{"me.wav"}
	if err := o.voiced(b); err == nil || err.Error() != "--speaker me.wav: the bundle tacotron has one voice" {
		t.Error(err)
	}
	b.Inference = []manifest.InferenceGraph{{Name: manifest.GraphConditioning}}
	if err := o.voiced(b); err != nil {
		t.Error(err)
	}
	o.Speakers = nil
	if err := o.voiced(b); err == nil || !strings.HasPrefix(err.Error(), "--speaker is missing") {
		t.Error(err)
	}
}
