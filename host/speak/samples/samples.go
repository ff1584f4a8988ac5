// Package samples speaks sentences at the evaluations of a run, with the weights of the evaluation, into WAV files
// (docs/synthesize.md):
//
//	list, err := samples.Read("sentences.txt", bundle, index, rules)
//	s, err := samples.Open(ctx, samples.Config{Samples: list.Sentences, Bundle: bundle, Weights: &model.Evaluated, ...})
//	defer s.Close()
//	s.Speak(200) // DIR/step-000200/1.wav, ...
package samples

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Folder is that of the samples in a run folder.
const Folder = "samples"

// Config configures a Speaker.
type Config struct {
	Samples []Sample
	Bundle  *ortgraphs.Bundle
	// Weights are the present parameters and state, and Tensors the memory of the model that has them, on its Device.
	Weights inference.Weights
	Tensors map[string]*ort.Tensor
	Device  *device.Device
	// MemoryLimit is that of ONNX Runtime for each graph on a GPU, in bytes; 0 means none. Check gets what it holds for
	// all graphs when it needs no more.
	MemoryLimit int
	Check       func(arenas int) error
	Threads     int
	Dir         string
	// Step and EvaluatedStep are where the run begins, and its last evaluation before.
	Step, EvaluatedStep int64
	Stop                <-chan struct{} // ends the samples of an evaluation early; may be nil
	Log                 *slog.Logger
	Bus                 *event.Bus
	Spent               func(began, ended time.Time)
}

// Speaker speaks the samples of a run. The trainer's goroutine calls it.
type Speaker struct {
	Config
	runtime    *inference.Runtime
	speaker    *synthesize.Speaker
	incomplete int // evaluations
}

// Open opens the graphs and listens to all voices once, so that what cannot be spoken is found before training. On a
// GPU it speaks the longest sentence, as long as the bundle allows, so that samples take no more memory later. A
// resumed run makes later samples again, and those of its last evaluation that are missing. Without samples, the
// speaker is nil.
func Open(ctx context.Context, c Config) (_ *Speaker, err error) {
	if len(c.Samples) == 0 {
		return nil, forget(c.Dir, c.EvaluatedStep)
	}
	s := &Speaker{Config: c}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--samples: %w", lighter(c.Device.Full(err))), s.Close())
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := forget(c.Dir, c.EvaluatedStep); err != nil {
		return nil, err
	}
	if c.Step > 0 && c.Step == c.EvaluatedStep {
		s.Speak(c.Step)
	}
	return s, nil
}

// lighter adds the next step to an error about memory.
func lighter(err error) error {
	if hint.Of(err) != "" || !errors.Is(err, ort.ErrOutOfMemory) && !errors.Is(err, gpu.ErrOutOfMemory) {
		return err
	}
	return hint.Errorf("try a smaller --batch-size, a larger --model-gpu-memory if it is limited, or no --samples",
		"%w", err)
}

func (s *Speaker) open(ctx context.Context) error {
	c := &s.Config
	device := *c.Device     // training has its own settings
	if device.CUDA != nil { // without the TF32 of training, as synthesize computes
		exact := *device.CUDA
		exact.TF32, exact.MemoryLimit = false, c.MemoryLimit
		device.CUDA = &exact
	}
	s.runtime = inference.New(
		inference.Config{Bundle: c.Bundle, Weights: c.Weights, Tensors: c.Tensors, Device: &device, Threads: c.Threads})
	err := s.staged(func() (err error) {
		s.speaker, err = synthesize.NewSpeaker(ctx, c.Bundle.Manifest.Synthesis, s.runtime)
		return err
	})
	if err != nil {
		return err
	}
	heard, texts := voices{}, []synthesize.Text{}
	defer heard.close()
	job := c.Bus.Begin(event.Work{Task: event.Listening, Unit: "voices of --samples", Of: len(c.Samples)})
	defer job.End()
	for i, sample := range c.Samples {
		texts = append(texts, sample.Text)
		if _, err := heard.voice(ctx, s.speaker, sample.Voice); err != nil {
			return fmt.Errorf("%s: %w", sample.Place, err)
		}
		if len(sample.Text.Unknown) > 0 {
			c.Log.Warn(fmt.Sprintf("--samples: %s: the tokenizer does not know %q", sample.Place,
				string(sample.Text.Unknown)))
		}
		job.Do(i+1, len(c.Samples))
	}
	if c.Device.Context == nil {
		return nil
	}
	began := time.Now()
	voice, err := heard.voice(ctx, s.speaker, c.Samples[0].Voice)
	if err != nil {
		return err
	}
	if err := s.speaker.Rehearse(ctx, voice, texts...); err != nil {
		return err
	}
	c.Log.Info("samples rehearsed", "s", time.Since(began).Seconds())
	arenas, err := s.runtime.ArenaBytes()
	if err != nil {
		return err
	}
	return c.Check(arenas)
}

// staged runs what copies weights to the device, with pinned memory on their way.
func (s *Speaker) staged(do func() error) (err error) {
	if s.Device.Context == nil {
		return do()
	}
	staging, err := s.Device.Context.AllocateHost(gpu.StagingBytes)
	if err != nil {
		return err
	}
	s.runtime.Staging = staging.Bytes()
	defer func() {
		s.runtime.Staging = nil
		err = errors.Join(err, staging.Close())
	}()
	return do()
}

// Close releases the graphs. It is idempotent.
func (s *Speaker) Close() error {
	if s == nil || s.runtime == nil {
		return nil
	}
	return s.runtime.Close()
}

// Speak speaks the samples with the present weights; a file that is there stays. Training goes on without what cannot
// be spoken or written.
func (s *Speaker) Speak(step int64) {
	if s == nil {
		return
	}
	ctx := stoppable{context.Background(), s.Stop}
	began := time.Now()
	err := s.speak(ctx, step)
	s.Spent(began, time.Now())
	if err == nil {
		s.Bus.Publish(&event.Spoken{
			Step: step, Folder: files.At(s.Dir).Join(rundir.Step(step)).String(), Samples: len(s.Samples),
			Time: time.Since(began),
		})
	}
	if err != nil && ctx.Err() == nil {
		s.incomplete++
		text := fmt.Sprintf("the samples of step %d are not complete, and training goes on: %v", step, err)
		if advice := hint.Of(err); advice != "" {
			text += " (" + advice + ")"
		}
		s.Log.Warn(text, "step", step)
	}
}

// stoppable is a context that ends when a channel is closed.
type stoppable struct {
	context.Context
	stop <-chan struct{}
}

func (s stoppable) Done() <-chan struct{} { return s.stop }

func (s stoppable) Err() error {
	select {
	case <-s.stop:
		return context.Canceled
	default:
		return nil
	}
}

func (s *Speaker) speak(ctx context.Context, step int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var made []files.Path
	defer func() {
		for _, folder := range slices.Backward(made) {
			if err != nil {
				folder.Remove() // without a sample it says nothing; one with a sample stays
			}
		}
	}()
	all := files.At(s.Dir)
	dir := all.Join(rundir.Step(step))
	for _, folder := range []files.Path{all, dir} { // not that of the run: it may have been removed
		err := folder.Mkdir()
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return disk.Explain(err, folder.String(), 1)
		}
		if err == nil {
			made = append(made, folder)
		}
	}
	if len(s.Bundle.Manifest.Adapters) > 0 {
		if err := s.staged(func() error { return s.runtime.Refresh(ctx) }); err != nil {
			return err
		}
	}
	heard := voices{}
	defer heard.close()
	job := s.Bus.Begin(event.Work{Task: event.Speaking, Unit: "sentences", Of: len(s.Samples)})
	defer job.End()
	for i, sample := range s.Samples {
		job.Do(i, len(s.Samples))
		path := dir.Join(file(i))
		if _, err := path.Lstat(); err == nil {
			continue
		}
		voice, err := heard.voice(ctx, s.speaker, sample.Voice)
		if err == nil {
			_, err = s.speaker.WriteFile(ctx, path, voice, sample.Text, warnings{s.Log, sample.Place, step})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", sample.Place, disk.Explain(err, path.String(), 1))
		}
	}
	return nil
}

// Report describes the samples; nil for a nil Speaker.
func (s *Speaker) Report() *report.Spoken {
	if s == nil {
		return nil
	}
	all, _ := steps(s.Dir) // a folder that cannot be read has had a warning
	spoken := &report.Spoken{Folder: Folder, Sentences: len(s.Samples), Steps: []int64{}, Incomplete: s.incomplete}
	for _, step := range all {
		name := rundir.Step(step)
		if n := s.spoken(files.At(s.Dir).Join(name)); n > 0 {
			spoken.Steps, spoken.Files = append(spoken.Steps, step), spoken.Files+n
			spoken.Last, spoken.LastFiles = path.Join(Folder, name), n
		}
	}
	return spoken
}

// file is the name of the file of a sample, counted from 0.
func file(i int) string { return strconv.Itoa(i+1) + ".wav" }

// spoken counts the samples that a folder has.
func (s *Speaker) spoken(dir files.Path) (n int) {
	for i := range s.Samples {
		if info, err := dir.Join(file(i)).Lstat(); err == nil && info.Mode().IsRegular() {
			n++
		}
	}
	return n
}

// voices are those of clips, each of which is heard once.
type voices map[clip]*synthesize.Voice

type clip struct {
	path           string
	offset, frames int
}

func (v voices) voice(ctx context.Context, speaker *synthesize.Speaker, row *dataset.Row) (*synthesize.Voice, error) {
	var key clip
	var clips []*dataset.Row
	if row != nil {
		key, clips = clip{row.Path, row.Offset, row.Frames}, append(clips, row)
	}
	if known, ok := v[key]; ok {
		return known, nil
	}
	voice, err := speaker.ListenTo(ctx, clips...)
	if err == nil {
		v[key] = voice
	}
	return voice, err
}

func (v voices) close() {
	for _, voice := range v {
		voice.Close()
	}
}

// warnings writes the warnings of a sample to the log.
type warnings struct {
	log   *slog.Logger
	place string
	step  int64
}

func (w warnings) Write(text []byte) (int, error) {
	w.log.Info(w.place+": "+strings.TrimSpace(strings.TrimPrefix(string(text), "warning: ")), "step", w.step)
	return len(text), nil
}

// steps returns the steps that a folder has samples of, in order.
func steps(dir string) ([]int64, error) {
	entries, err := files.At(dir).ReadDir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []int64
	for _, e := range entries {
		if step, ok := rundir.ParseStep(e.Name()); ok && e.IsDir() {
			list = append(list, step)
		}
	}
	slices.Sort(list)
	return list, err
}

// forget removes the samples of the steps after one, which a resumed run makes again.
func forget(dir string, after int64) error {
	all, err := steps(dir)
	for _, step := range all {
		if step > after {
			err = errors.Join(err, files.At(dir).Join(rundir.Step(step)).RemoveAll())
		}
	}
	return err
}
