package samples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/variant"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// run is a run with a bundle that speaks, whose weights are in memory, and a data set.
type run struct {
	dir    string
	bundle *ortgraphs.Bundle
	data   *dataset.Index
	bias   []float32 // the parameter stop_head.bias
	log    bytes.Buffer
	Config
}

func newRun(t *testing.T) *run {
	t.Helper()
	r := &run{dir: t.TempDir()}
	folder := filepath.Join(r.dir, "bundle")
	if err := synthesizetest.Write(
		folder, "../../../ortgraphs/testdata/pico", "../../data/dataset/testdata/voicebpe/tokenizer.json",
	); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.bundle, err = ortgraphs.Load(folder); err != nil {
		t.Fatal(err)
	}
	file, err := r.bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	buffer, err := ort.NewBuffer(4)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Read("stop_head.bias", buffer.Bytes()); err != nil {
		t.Fatal(err)
	}
	bias, err := ort.NewTensor(buffer.Bytes(), manifest.F32, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bias.Close(); buffer.Close() })
	r.bias = ort.View[float32](buffer.Bytes())
	sample, err := dataset.Sample(filepath.Join(r.dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	if r.data, err = dataset.Open(t.Context(), dataset.Config{
		Dir: sample, Split: dataset.Eval, SampleRate: 22050,
	}); err != nil {
		t.Fatal(err)
	}
	r.Config = Config{
		Bundle: r.bundle, Weights: file, Tensors: map[string]*ort.Tensor{"stop_head.bias": bias},
		Device: new(device.Device), Threads: 1, Run: r.dir,
		Log: slog.New(slog.NewTextHandler(&r.log, nil)), Spent: func(_, _ time.Time) {}, Bus: event.NewBus(),
	}
	return r
}

// folder is that of the samples.
func (r *run) folder() string { return filepath.Join(r.dir, rundir.SamplesFolder) }

// write writes a file of sentences.
func (r *run) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens the speaker of a file of sentences.
func (r *run) open(t *testing.T, name, text string) *Speaker {
	t.Helper()
	list, err := Read(r.write(t, name, text), r.bundle, r.data, texts.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	r.Sentences = list.Sentences
	s, err := Open(t.Context(), r.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (r *run) sample(t *testing.T, step, number int) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.folder(), fmt.Sprintf("step-%06d/%d.wav", step, number)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Samples have the present weights, those of an evaluation compare with those of another one, and they are what the
// command speaks.
func TestSpeak(t *testing.T) {
	r := newRun(t)
	s := r.open(t, "a.txt", "hello there.\n\ngood morning.\n")
	first := r.bias[0]
	for step, bias := range map[int]float32{1: first, 2: first + 0.25, 3: first} {
		r.bias[0] = bias
		s.Speak(int64(step))
	}
	for number := 1; number <= 2; number++ {
		if !bytes.Equal(r.sample(t, 1, number), r.sample(t, 3, number)) ||
			bytes.Equal(r.sample(t, 1, number), r.sample(t, 2, number)) {
			t.Errorf("sample %d does not follow the weights", number)
		}
	}
	weights, err := r.bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	runtime := inference.New(
		inference.Config{Bundle: r.bundle, Weights: weights, Device: new(device.Device), Threads: 1})
	defer runtime.Close()
	speaker, err := synthesize.NewSpeaker(t.Context(), r.bundle.Manifest.Synthesis, runtime)
	if err != nil {
		t.Fatal(err)
	}
	voice, err := speaker.Listen(t.Context(), []string{r.data.Rows[0].Path})
	if err != nil {
		t.Fatal(err)
	}
	defer voice.Close()
	text, err := must(synthesize.NewTokenizer(r.bundle, texts.Rules{})).Text("hello there.", "en")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, "a.wav")
	if _, err := speaker.WriteFile(t.Context(), files.At(path), voice, text, io.Discard); err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, r.sample(t, 1, 1)) {
		t.Errorf("the command speaks otherwise: %v", err)
	}
	got := s.Report()
	if got.Sentences != 2 || !slices.Equal(got.Steps, []int64{1, 2, 3}) || got.Incomplete != 0 || r.log.Len() > 0 {
		t.Errorf("%+v, log: %s", got, &r.log)
	}
}

// On a GPU, samples take their memory when they are opened, before the watch has its baseline, and none later.
func TestMemory(t *testing.T) {
	r := newRun(t)
	runtime.LockOSThread() // for the test's goroutine, which ends with it
	card := gputest.New(gputest.Config{Memory: 1 << 30, Misuse: func(err error) { t.Error(err) }})
	if err := card.Bind(); err != nil {
		t.Fatal(err)
	}
	stream, err := card.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stream.Close(); card.Close() }) // reports what is still open
	if r.bundle, err = variant.Rewrite(
		r.bundle.Dir, filepath.Join(r.dir, "adapted"), variant.Adapter("stop_head.weight"),
	); err != nil {
		t.Fatal(err)
	}
	file, err := r.bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	r.Bundle, r.Weights, r.Device = r.bundle, file, &device.Device{Device: train.Device{Context: card, Compute: stream}}
	free := func() int { n, _, err := card.MemInfo(); return must(n, err) }
	before := free()
	checked := 0
	r.Check = func(int) error { checked++; return nil }
	s := r.open(t, "a.txt", "hello there.\ngood morning.")
	opened := free()
	// The parameter stop_head.bias is on the device, and stop_head.weight has an adapter.
	want := must(Read(filepath.Join(r.dir, "a.txt"), r.bundle, r.data, texts.Rules{})).Bytes
	if before-opened != want || want != 4+4*16 {
		t.Errorf("%d bytes are taken, and %d were announced", before-opened, want)
	}
	if checked != 1 || !strings.Contains(r.log.String(), "samples rehearsed") {
		t.Errorf("no rehearsal, or %d checks after it: %s", checked, &r.log)
	}
	allocated := errors.New("samples allocate memory")
	card.Fail(gputest.Allocate, 1, allocated)
	for step := range int64(2) {
		s.Speak(step)
	}
	if got := s.Report(); got.Incomplete != 0 || len(got.Steps) != 2 || free() != opened {
		t.Errorf("%+v, log: %s", got, &r.log)
	}
	if _, err := Open(t.Context(), r.Config); !errors.Is(err, allocated) {
		t.Errorf("no allocation has failed until now: %v", err)
	}
	full := fmt.Errorf("%w: the limit is not enough", gpu.ErrOutOfMemory)
	r.Check = func(int) error { return full }
	if _, err := Open(t.Context(), r.Config); !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "--samples: ") ||
		hint.Of(err) == "" {
		t.Errorf("beyond the limit: %v", err)
	}
}

// Training goes on without samples that cannot be written. A stop does not wait for samples, and no warning follows.
func TestIncomplete(t *testing.T) {
	r := newRun(t)
	s := r.open(t, "a.txt", "hello there.")
	if err := os.MkdirAll(r.folder(), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.folder(), "step-000005"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s.Speak(5)
	if got := s.Report(); got.Incomplete != 1 || len(got.Steps) != 0 ||
		!strings.Contains(r.log.String(), "the samples of step 5 are not complete, and training goes on: ") {
		t.Errorf("%+v, log: %s", got, &r.log)
	}
	r.log.Reset()
	stop := make(chan struct{})
	s.Stop = stop
	s.Speak(6)
	close(stop)
	s.Speak(7)
	if got := s.Report(); !slices.Equal(got.Steps, []int64{6}) || got.Incomplete != 1 || r.log.Len() > 0 {
		t.Errorf("after a stop: %+v, log: %s", got, &r.log)
	}
}

// A resumed run makes the samples of later steps again, and those of its evaluation that are missing.
func TestResume(t *testing.T) {
	r := newRun(t)
	s := r.open(t, "a.txt", "hello there.\ngood morning.")
	for step := range int64(3) {
		s.Speak(step + 1)
	}
	want := r.sample(t, 2, 2)
	for _, name := range []string{"step-000002/2.wav"} {
		if err := os.Remove(filepath.Join(r.folder(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.folder(), "step-000002/1.wav"), []byte("kept"), 0o666); err != nil {
		t.Fatal(err)
	}
	r.Step, r.EvaluatedStep = 2, 2
	again, err := Open(t.Context(), r.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	got := again.Report().Steps
	if !slices.Equal(got, []int64{1, 2}) || !bytes.Equal(r.sample(t, 2, 2), want) ||
		string(r.sample(t, 2, 1)) != "kept" {
		t.Errorf("samples of the steps %v", got)
	}
	r.Sentences, r.EvaluatedStep = nil, 1
	none, err := Open(t.Context(), r.Config)
	if none != nil || err != nil || none.Report() != nil || none.Close() != nil {
		t.Errorf("a run without sentences: %v", err)
	} else if none.Speak(9); len(must(rundir.Steps(files.At(r.folder())))) != 1 {
		t.Error("a run without sentences speaks, or keeps later samples")
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func TestRefusals(t *testing.T) {
	r := newRun(t)
	quoted := func(path string) string { return fmt.Sprintf("%q", path) }
	me := must(filepath.Abs(r.data.Rows[0].Path))
	for text, want := range map[string]string{
		`{"audio_filepath": "none.wav", "text": "One."}`: "a.jsonl:1: none.wav: ",
		`{"audio_filepath": ` + quoted(me) +
			`, "text": "One.", "language": "xx"}`: `a.jsonl:1: language "xx": the tokenizer has no token [xx]`,
		strings.Repeat(
			`{"audio_filepath": `+quoted(me)+`, "text": "One."}`+"\n", most+1,
		): "201 sentences, at most 200 are spoken",
		"\n": "a.jsonl has no sentence",
	} {
		_, err := Read(r.write(t, "a.jsonl", text), r.bundle, r.data, texts.Rules{})
		if err == nil || !strings.HasPrefix(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%v (%s), want %s", err, hint.Of(err), want)
		}
	}
	r.data.Rows = r.data.Rows[:1]
	r.data.Rows[0].Samples = 100
	if _, err := Read(
		r.write(t, "a.txt", "One."), r.bundle, r.data, texts.Rules{},
	); err == nil || !strings.HasPrefix(err.Error(), "a.txt:1: no clip of metadata_eval.csv is long enough") {
		t.Error(err)
	}
	all := r.bundle.Manifest.Inference
	r.bundle.Manifest.Inference = slices.DeleteFunc(slices.Clone(all),
		func(g manifest.InferenceGraph) bool { return g.Name == manifest.GraphConditioning })
	if list, err := Read(
		r.write(t, "a.txt", "One."), r.bundle, r.data, texts.Rules{},
	); err != nil || list.Sentences[0].Voice != nil {
		t.Errorf("a model with one voice: %v", err)
	}
	r.bundle.Manifest.Inference = all
	list, err := Read(r.write(t, "b.jsonl", `{"audio_filepath": `+quoted(me)+`, "duration": 0.1, "text": "One."}`),
		r.bundle, r.data, texts.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	r.Sentences = list.Sentences
	if _, err := Open(t.Context(), r.Config); err == nil || !strings.Contains(err.Error(), "--samples: b.jsonl:1: ") ||
		!strings.Contains(err.Error(), "the clip has 0.1 s, and a voice needs at least 0.2 s") || !exit.IsRefusal(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	if _, err := Open(ctx, r.Config); err == nil || !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
		t.Error(err)
	}
}

// TestStopped: after a stop in the middle, the report has the sentences that were spoken, and names no folder without
// one.
func TestStopped(t *testing.T) {
	r := newRun(t)
	s := r.open(t, "a.txt", "hello there.\ngood morning.\ngood night.")
	s.Speak(1)
	stop := make(chan struct{})
	s.Stop = stop
	// The first sentence is spoken, the stop comes in the second.
	if err := os.MkdirAll(filepath.Join(r.folder(), "step-000002"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.folder(), "step-000002/1.wav"), []byte("spoken"), 0o666); err != nil {
		t.Fatal(err)
	}
	// as a run that was killed leaves one
	if err := os.MkdirAll(filepath.Join(r.folder(), "step-000004"), 0o777); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Millisecond, func() { close(stop) })
	s.Speak(2)
	<-stop
	s.Speak(3)
	got := s.Report()
	if got.Files < 4 || got.LastFiles != got.Files-3 || !slices.Equal(got.Steps, []int64{1, 2}) ||
		got.Last != "samples/step-000002" || r.log.Len() > 0 {
		t.Errorf("%+v, log: %s", got, &r.log)
	}
	row := *s.texts[0].Voice
	row.Path = "none.wav"
	s.Stop, s.texts[0].Voice = nil, &row
	s.Speak(5)
	if _, err := os.Stat(filepath.Join(r.folder(), "step-000005")); err == nil || r.log.Len() == 0 {
		t.Error("an empty folder stays, or no warning says why")
	}
}
