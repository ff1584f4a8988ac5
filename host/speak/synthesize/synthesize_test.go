package synthesize

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/wav"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

const tokenizer = "../../data/dataset/testdata/voicebpe/tokenizer.json"

// speaking returns the bundle of synthesizetest, its speaker on the CPU, and what its stop_head adds to latents.
func speaking(t *testing.T) (*ortgraphs.Bundle, *Speaker, float64) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "bundle")
	if err := synthesizetest.Write(folder, "../../../ortgraphs/testdata/pico", tokenizer); err != nil {
		t.Fatal(err)
	}
	bundle, err := ortgraphs.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Close() })
	offset := 0.0
	for _, name := range []string{"stop_head.bias", "stop_head.weight"} {
		info, _ := weights.Tensor(name)
		values := make([]byte, info.Bytes)
		if err := weights.Read(name, values); err != nil {
			t.Fatal(err)
		}
		for at := range len(values) / 4 {
			offset += float64(math.Float32frombits(binary.LittleEndian.Uint32(values[4*at:])))
		}
	}
	runtime := inference.New(inference.Config{Bundle: bundle, Weights: weights, Device: new(device.Device), Threads: 1})
	t.Cleanup(func() { runtime.Close() })
	s, err := NewSpeaker(t.Context(), bundle.Manifest.Synthesis, runtime)
	if err != nil {
		t.Fatal(err)
	}
	return bundle, s, offset
}

// clip writes a WAV file of so many seconds with one value.
func clip(t *testing.T, value float32, rate int, seconds float64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clip.wav")
	s, err := create(files.At(path), rate)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(slices.Repeat([]float32{value}, int(seconds*float64(rate)))); err != nil {
		t.Fatal(err)
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	return path
}

// expected computes what the model of synthesizetest does greedily: the latents, and the waveform of all of them.
func expected(voice, speaker, bias float64, tokens []int32) (latents [][2]float64, wave []float64, codes int) {
	keys := []float64{voice}
	for _, token := range tokens {
		keys = append(keys, float64(token))
	}
	for {
		sum := 0.0
		for _, k := range keys {
			sum += k
		}
		target := math.Mod(sum, 7)
		if len(keys) > 40 {
			target = 7
		}
		latents = append(latents, [2]float64{target + bias, float64(len(keys))})
		code := math.Round(target)
		if code == 7 {
			break
		}
		codes++
		keys = append(keys, code+float64(codes))
	}
	for i, l := range latents {
		mean := 0.5*l[0] + 0.01*l[1]
		if i > 0 {
			mean += 0.25 * latents[i-1][0]
		}
		if i+1 < len(latents) {
			mean += 0.25 * latents[i+1][0]
		}
		for j := range 4 {
			wave = append(wave, mean*0.1*speaker*float64(i%3*4+j+1)/12)
		}
	}
	return latents, wave, codes
}

var greedy = sampling.Settings{RepetitionPenalty: 1}

// The whole way: clips to a voice, tokens to codes with a cache, latents to parts of a waveform, against the formulas
// of the model.
func TestSpeak(t *testing.T) {
	_, s, bias := speaking(t)
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.25, 22050, 2), clip(t, 0.5, 22050, 2)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	// Three seconds of both clips: two of the first, one of the second. The speaker is the mean of the two.
	const heard, speaker = 0.25*2/3 + 0.5/3, 0.375
	for _, tokens := range [][]int32{{3}, {5, 9, 2, 0, 11}, {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
		31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
	}} {
		var wave []float32
		parts := 0
		spoken, err := s.Speak(context.Background(), voice, tokens, s.spec.Longest, greedy, func(part []float32) error {
			wave = append(wave, part...)
			parts++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		latents, want, codes := expected(heard, speaker, bias, tokens)
		if spoken.Length != codes || spoken.Cut || len(wave) != len(want) || len(wave) != 4*len(latents) {
			t.Fatalf("%v: %+v, %d samples; want %d codes, %d samples", tokens, spoken, len(wave), codes, len(want))
		}
		for i := range want {
			if math.Abs(float64(wave[i])-want[i]) > 1e-4 { // clips of 16 bits
				t.Fatalf("%v: sample %d is %v, want %v", tokens, i, wave[i], want[i])
			}
		}
		if enough := len(latents) > firstPart+1; (parts > 1) != enough {
			t.Errorf("%d latents in %d parts", len(latents), parts)
		}
	}
}

// A text that the model does not end is cut at the longest one.
func TestSpeakTooLong(t *testing.T) {
	bundle, s, _ := speaking(t)
	bundle.Manifest.Synthesis.Codes.Stop = 100 // it never comes
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.5, 22050, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	samples := 0
	spoken, err := s.Speak(context.Background(), voice, []int32{1}, s.spec.Longest, greedy,
		func(part []float32) error { samples += len(part); return nil })
	if err != nil || spoken != (Spoken{Length: 60, Cut: true}) || samples != 4*60 {
		t.Errorf("%+v, %d samples, %v", spoken, samples, err)
	}
}

// TestRehearse: a rehearsal is as long as the longest text that is spoken, whatever the model would choose, and takes
// the longest part.
func TestRehearse(t *testing.T) {
	_, s, _ := speaking(t)
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.5, 22050, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	if spoken, err := s.Speak(t.Context(), voice, []int32{1}, s.spec.Longest, greedy, func([]float32) error {
		return nil
	}); err != nil || spoken.Length >= 60 {
		t.Fatalf("the text ends after %d codes, %v", spoken.Length, err)
	}
	r := &rehearsals{kind: s.kind}
	s.kind = r
	if err := s.Rehearse(t.Context(), voice, Text{parts: [][]int32{{1}, {1, 2, 3}}}, Text{
		parts: [][]int32{{1, 2}},
	}); err != nil || len(r.tokens) != 3 || r.spoken != (Spoken{Length: 60, Cut: true}) {
		t.Errorf("%d tokens, %+v, %v", len(r.tokens), r.spoken, err)
	}
	_, f := speakingFrames(t, 12)
	f.spec.Frames.Stop = 0 // each frame is the last one
	spoken, err := f.kind.rehearse(t.Context(), listen(t, f), hello, f.spec.Longest)
	if err != nil || spoken != (Spoken{Length: 12, Cut: true}) {
		t.Errorf("frames: %+v, %v", spoken, err)
	}
}

// TestWarm: after the first run of each graph that the first sound needs, a text has the same samples as without that.
func TestWarm(t *testing.T) {
	_, s, _ := speaking(t)
	voice := listen(t, s)
	speak := func() (all []float32) {
		if _, err := s.Speak(t.Context(), voice, []int32{1}, s.spec.Longest, greedy, func(part []float32) error {
			all = append(all, part...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := speak()
	if err := s.Warm(t.Context(), voice, Text{parts: [][]int32{{1}, {1, 2, 3}}}); err != nil {
		t.Fatal(err)
	}
	if after := speak(); !slices.Equal(before, after) {
		t.Errorf("%d samples, then %d others", len(before), len(after))
	}
	_, f := speakingFrames(t, 12)
	other := listen(t, f)
	for _, c := range []struct {
		speaker *Speaker
		voice   *Voice
		graph   *inference.Graph
	}{{s, voice, s.prefill}, {s, voice, s.step}, {s, voice, s.vocoder}, {f, other, f.prefill}, {f, other, f.step}} {
		inputs := c.graph.Spec.Inputs
		c.graph.Spec.Inputs = append(slices.Clip(inputs), manifest.TensorSpec{Name: "absent"})
		err := c.speaker.Warm(t.Context(), c.voice, Text{parts: [][]int32{hello[:1]}})
		if err == nil || !strings.Contains(err.Error(), "absent") {
			t.Errorf("%s has not run: %v", c.graph.Spec.Name, err)
		}
		c.graph.Spec.Inputs = inputs
	}
}

// rehearsals keeps the last rehearsal.
type rehearsals struct {
	kind
	tokens []int32
	spoken Spoken
}

func (r *rehearsals) rehearse(
	ctx context.Context, voice *Voice, tokens []int32, longest int,
) (_ Spoken, err error) {
	r.tokens = tokens
	r.spoken, err = r.kind.rehearse(ctx, voice, tokens, longest)
	return r.spoken, err
}

func TestSpeakIsInterrupted(t *testing.T) {
	_, s, _ := speaking(t)
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.5, 22050, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(os.ErrDeadlineExceeded)
	_, err = s.Speak(ctx, voice, []int32{1}, s.spec.Longest, greedy, func([]float32) error { return nil })
	if err != os.ErrDeadlineExceeded {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	_, s, _ := speaking(t)
	long, short, silent := clip(t, 0.5, 22050, 1), clip(t, 0.5, 22050, 0.1), clip(t, 0, 22050, 1)
	for path, want := range map[string]string{
		short:                short + ": the clip has 0.1 s, and a voice needs at least 0.2 s",
		silent:               silent + ": the first 1 s are silent: no sample is above -80 dB of full scale",
		"nowhere.wav":        "nowhere.wav: no such file or directory",
		"synthesize_test.go": "synthesize_test.go: the file is no audio",
	} {
		_, err := s.Listen(t.Context(), []string{long, path})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !exit.IsRefusal(err) || hint.Of(err) == "" {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	if _, err := s.Listen(ctx, []string{long}); err != os.ErrDeadlineExceeded {
		t.Errorf("interrupted: %v", err)
	}
}

// TestBroken: an error while speaking names its part, and has a hint.
func TestBroken(t *testing.T) {
	_, s, _ := speaking(t)
	voice, err := s.Listen(t.Context(), []string{clip(t, 0.5, 22050, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	out, err := stream(io.Discard, s.Rate())
	if err != nil {
		t.Fatal(err)
	}
	s.spec.Codes.Vocoder.Samples *= 2
	u := utterance{speaker: s, voice: voice, settings: greedy, sound: out, warnings: io.Discard}
	err = u.speak(t.Context(), Text{parts: [][]int32{{1}}})
	if err == nil || !strings.HasPrefix(err.Error(), "part 1 of 1: the vocoder makes ") ||
		!strings.HasPrefix(hint.Of(err), "correct synthesis.vocoder") {
		t.Errorf("%v (%s)", err, hint.Of(err))
	}
	s.spec.Codes.Vocoder.Samples /= 2
	made := 0
	s.Made = func(units int) { made = units }
	err = u.speak(t.Context(), Text{parts: [][]int32{{1}, {}}})
	if made == 0 || made != u.length {
		t.Errorf("%d codes were reported of %d", made, u.length)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "part 2 of 2: ") || hint.Of(err) == "" || exit.Code(err) != 1 {
		t.Errorf("%v (%s)", err, hint.Of(err))
	}
	for _, tt := range []struct {
		err  error
		hint string
		code int
	}{
		{sampling.ErrNotFinite, "training has damaged the weights", 1},
		{ort.ErrOutOfMemory, "end what else uses the memory", 3},
		{exit.ErrInterrupted, "", 130},
	} {
		err := broken(tt.err)
		if !strings.HasPrefix(hint.Of(err), tt.hint) || exit.Code(err) != tt.code ||
			tt.hint == "" && hint.Of(err) != "" {
			t.Errorf("%v: status %d, hint %s", err, exit.Code(err), hint.Of(err))
		}
	}
}

func TestText(t *testing.T) {
	latin := filepath.Join(t.TempDir(), "latin1.txt")
	if err := os.WriteFile(latin, []byte("caf\xe9"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Text: "a \ufffd b"}, ""}, // the character itself is valid
		{Options{Text: "سلام\xff"}, "--text: it is not in UTF-8: byte 9 (0xff) in line 1"},
		{Options{TextFile: latin}, "--text-file " + latin + ": it is not in UTF-8: byte 4 (0xe9) in line 1"},
		{Options{TextFile: "nowhere.txt"}, "--text-file nowhere.txt: no such file or directory"},
	} {
		_, err := tt.o.text(t.Context())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func TestWAV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wav")
	s, err := create(files.At(path), 24000)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write([]float32{0, 0.5, -2, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name before it is complete")
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	s.discard() // nothing is left to do
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != wav.HeaderSize+8 || binary.LittleEndian.Uint32(data[4:]) != uint32(len(data)-8) ||
		binary.LittleEndian.Uint32(data[40:]) != 8 {
		t.Errorf("% x", data)
	}
	for i, want := range []int16{0, 16384, -32768, 32767} {
		if got := int16(binary.LittleEndian.Uint16(data[wav.HeaderSize+2*i:])); got != want {
			t.Errorf("sample %d is %d, want %d", i, got, want)
		}
	}
	if s, err = create(files.At(path+"2"), 24000); err != nil {
		t.Fatal(err)
	}
	s.samples = mostSamples
	if err := s.write([]float32{0}); err == nil || !strings.Contains(err.Error(), "at most 4 GiB") {
		t.Errorf("more samples than the header can say: %v", err)
	}
	s.discard()
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if s, err = create(files.At(folder), 24000); err != nil {
		t.Fatal(err)
	}
	if err := s.finish(); err == nil {
		t.Error("a folder has become a file")
	}
	s.discard()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), "[.a-z]*")); len(left) != 1 {
		t.Errorf("left beside the folder: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "[.a-z]*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestPieces(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int // runes of a piece
		want []string
	}{
		{"One. Two! Three?", 99, []string{"One. Two! Three?"}},
		{"One. Two! Three?", 9, []string{"One. Two!", "Three?"}},
		{"One.\n\n  Two.  \n", 99, []string{"One.", "Two."}},
		{"It costs 3.50, e.g. today. Yes.", 27, []string{"It costs 3.50, e.g. today.", "Yes."}},
		{"He said: \"No.\" And left.", 16, []string{"He said: \"No.\"", "And left."}},
		{"one two, three four five", 12, []string{"one two,", "three four", "five"}},
		{"سلام. خوبی؟ بله، خوبم.", 12, []string{"سلام. خوبی؟", "بله، خوبم."}},
		{"你好。再见。", 4, []string{"你好。", "再见。"}},
		{"你好。再见。谢谢。早安。", 7, []string{"你好。再见。", "谢谢。早安。"}},
		{"...", 9, []string{"..."}},
		{"这是一个很长的句子没有标点符号", 6, []string{"这是一个很长", "的句子没有标", "点符号"}},
		{"他说「你好世界」然后走了", 6, []string{"他说「你好世", "界」然后走了"}},
		{"他说「你好」", 3, []string{"他说", "「你", "好」"}},
		{"မင်္ဂလာပါ။နေကောင်းလား။", 14, []string{"မင်္ဂလာပါ။", "နေကောင်းလား။"}},
		{"วันนี้อากาศดีเมืองไทย", 12, []string{"วันนี้อากาศ", "ดีเมืองไทย"}},
		{"กเก", 2, []string{"ก", "เก"}}, // the vowel is spoken after its consonant
		{"a bb extraordinary c", 5, []string{"a bb", "extra", "ordin", "ary c"}},
		{"e\u0301e\u0301", 2, []string{"e\u0301", "e\u0301"}},
		{"👩‍👩‍👧👩‍👩‍👧", 5, []string{"👩‍👩‍👧", "👩‍👩‍👧"}},
		{" \n ", 9, nil},
	} {
		got, long := pieces(tt.text, func(s string) bool { return len([]rune(s)) <= tt.most })
		if long != "" || !slices.Equal(got, tt.want) {
			t.Errorf("%q in %d: %q (%q), want %q", tt.text, tt.most, got, long, tt.want)
		}
	}
	_, long := pieces("a be\u0301\u0301\u0301\u0301b c", func(s string) bool { return len(s) <= 5 })
	if long != "e\u0301\u0301\u0301\u0301" {
		t.Errorf("%q is too long", long)
	}
}
