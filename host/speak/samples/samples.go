// Package samples speaks at the evaluations of a run, with the weights of the evaluation: clips of the validation data,
// and the sentences of a file. It measures what it has spoken (docs/speech-measures.md), and writes WAV files, pictures
// and lines (docs/synthesize.md):
//
//	list, err := samples.Read("sentences.txt", bundle, index, rules)
//	list.Clips, err = samples.Clips(2, bundle, index, rules)
//	s, err := samples.Open(ctx, samples.Config{List: list, Bundle: bundle, Weights: &model.Evaluated, ...})
//	defer s.Close()
//	spoken := s.Speak(200) // DIR/samples/step-000200/clip-1.wav, 1.wav, ...
package samples

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/measures"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Config configures a Speaker.
type Config struct {
	List
	Bundle *ortgraphs.Bundle
	// Weights are the present parameters and state, and Tensors the memory of the model that has them, on its Device.
	Weights inference.Weights
	Tensors map[string]*ort.Tensor
	Device  *device.Device
	// MemoryLimit is that of ONNX Runtime for each graph on a GPU, in bytes; 0 means none. Check gets what it holds for
	// all graphs when it needs no more.
	MemoryLimit int
	Check       func(arenas int) error
	Threads     int
	Run         string      // the folder of the run
	Recognizer  *Recognizer // nil without
	Ranks       Ranks       // nil in a run of one process
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
	analyzer   *measures.Analyzer         // nil for a sample rate without a voice
	texts      []*text                    // of all ranks
	mute       []int                      // places of texts of this rank that it cannot speak
	warned     []string                   // of its texts, before the others know
	file       *report.SpokenLines        // nil on other ranks than the first
	lines      map[line]report.SpokenLine // of all evaluations so far
	before     *event.Spoken              // the evaluation before the last one
	last       *event.Spoken              // the last one; either may be nil
	incomplete int                        // evaluations
	// recognizerWarned is true once a warning has said that the recognizer fails, and recognizerSlow if it has taken
	// too long in the evaluation at hand.
	recognizerWarned, recognizerSlow bool
}

// line is what a line of spoken.jsonl is of.
type line struct {
	step int64
	clip bool
	i    int
}

// Open opens the graphs and listens to all voices once, so that what cannot be spoken is found before training. On a
// GPU it speaks the longest text, as long as the bundle allows, so that samples take no more memory later. A resumed
// run makes later samples again, and those of its last evaluation that are missing. Without anything to speak, the
// speaker is nil, and what earlier evaluations have left is no reason to fail.
func Open(ctx context.Context, c Config) (*Speaker, error) {
	s := &Speaker{Config: c, texts: textsOf(c.List)}
	if len(s.texts) == 0 {
		s.leave()
		return nil, nil
	}
	mayBeMute := func() bool { return c.Optional && len(c.Sentences) == 0 && context.Cause(ctx) == nil }
	fatal, err := s.opened(s.explain(s.open(ctx)), mayBeMute)
	if err == nil {
		fatal, err = s.begin(mayBeMute)
	}
	if err != nil {
		if err = errors.Join(err, s.Close()); fatal {
			return nil, err
		}
		if c.world().Leads() {
			c.Log.Warn(fmt.Sprintf("no validation clips are spoken: %v", err))
		}
		s.leave()
		return nil, nil
	}
	if c.Step > 0 && c.Step == c.EvaluatedStep {
		if e, anew := s.evaluate(c.Step); anew && c.world().Leads() {
			c.Bus.Publish(e)
		}
	}
	return s, nil
}

// explain names the flag that asked for what has failed.
func (s *Speaker) explain(err error) error {
	if err == nil {
		return nil
	}
	if err = lighter(s.Device.Full(err)); len(s.Sentences) > 0 {
		return fmt.Errorf("--samples: %w", err)
	}
	return fmt.Errorf("--spoken-clips: %w", err)
}

// dir is the folder of the samples.
func (s *Speaker) dir() files.Path { return files.At(filepath.Join(s.Run, rundir.SamplesFolder)) }

// linesPath is the file of lines.
func (s *Speaker) linesPath() string { return filepath.Join(s.Run, rundir.SpokenFile) }

// openLines opens the file of lines without those after the last evaluation, and warns of damaged ones.
func (s *Speaker) openLines() (*report.SpokenLines, error) {
	lines, err := report.OpenSpoken(s.linesPath(), s.EvaluatedStep)
	if err == nil && lines.Problem() != "" {
		s.Log.Warn(lines.Problem())
	}
	return lines, err
}

// begun is what rank 0 tells the others before the first evaluation.
type begun struct {
	Mute  bool                // it cannot write what is spoken
	Lines []report.SpokenLine // of the last evaluation
}

// begin opens the file of lines on rank 0. The other ranks get those of the last evaluation, so that all know what is
// missing of it. It returns why the run speaks nothing; fatal reports whether it ends because of that.
func (s *Speaker) begin(mayBeMute func() bool) (fatal bool, err error) {
	s.lines = map[line]report.SpokenLine{}
	var own begun
	if s.world().Leads() {
		if err = rundir.RemoveAfter(s.dir(), s.EvaluatedStep); err == nil {
			s.file, err = s.openLines()
		}
		if err = s.explain(err); err != nil && !mayBeMute() {
			return true, err
		}
		if own.Mute = err != nil; !own.Mute {
			own.Lines = s.remember(s.file.Kept())
		}
	}
	lead, lost := FromLead(s.Ranks, own)
	switch {
	case lost != nil:
		return true, lost
	case err != nil:
		return false, err
	case lead.Mute:
		return false, errors.New("rank 0 cannot write what is spoken")
	case !s.world().Leads():
		s.remember(lead.Lines)
	}
	return false, nil
}

// leave removes what the evaluations after the last one have left, for a run that speaks no more.
func (s *Speaker) leave() {
	if !s.world().Leads() {
		return
	}
	err := rundir.RemoveAfter(s.dir(), s.EvaluatedStep)
	if exists(files.At(s.linesPath())) {
		lines, lerr := s.openLines()
		err = errors.Join(err, lerr, lines.Close())
	}
	if err != nil {
		s.Log.Warn(fmt.Sprintf("what later evaluations have spoken stays: %v", err))
	}
}

// remember takes the lines of the evaluations before, and returns those of the last one of the run.
func (s *Speaker) remember(all []report.SpokenLine) (last []report.SpokenLine) {
	for _, l := range all {
		u := l.Utterance()
		s.lines[line{l.Step, u.Clip, u.Number}] = l
		if l.Step == s.EvaluatedStep {
			last = append(last, l)
		}
	}
	if len(all) > 0 {
		s.last = s.Evaluation(all[len(all)-1].Step)
	}
	return last
}

// lighter adds the next step to an error about memory.
func lighter(err error) error {
	if hint.Of(err) != "" || !ofMemory(err) {
		return err
	}
	return hint.Errorf("try a smaller --batch-size, a larger --model-gpu-memory if it is limited, or no --samples and "+
		"--spoken-clips 0",
		"%w", err)
}

func ofMemory(err error) bool {
	return errors.Is(err, ort.ErrOutOfMemory) || errors.Is(err, gpu.ErrOutOfMemory)
}

// open opens the graphs, if this rank has texts.
func (s *Speaker) open(ctx context.Context) error {
	c := &s.Config
	if len(s.own()) == 0 {
		return nil
	}
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
	if s.analyzer, err = measures.NewAnalyzer(s.speaker.Rate()); err != nil {
		c.Log.Info("speech is not measured", "error", err)
	}
	heard := voices{}
	defer heard.close()
	texts, err := s.listen(ctx, heard)
	if err != nil || c.Device.Context == nil || len(texts) == 0 {
		return err
	}
	return s.rehearse(ctx, heard, texts)
}

// listen hears the voices of this rank's texts, and prepares the recordings to compare with.
func (s *Speaker) listen(ctx context.Context, heard voices) (left []*text, err error) {
	own := s.own()
	job := s.Bus.Begin(event.Work{Task: event.Listening, Unit: "voices", Of: len(own)})
	defer job.End()
	for i, t := range own {
		_, err := heard.voice(ctx, s.speaker, t.Voice)
		if err == nil {
			err = s.prepare(ctx, t)
		}
		if err != nil && t.Clip != nil && s.Optional && context.Cause(ctx) == nil && !ofMemory(err) {
			s.warn(fmt.Sprintf("the clip %s is not spoken at evaluations: %v", t.Place, err))
			s.mute = append(s.mute, t.place)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Place, err)
		}
		if len(t.Text.Unknown) > 0 && t.Clip == nil {
			s.warn(fmt.Sprintf("--samples: %s: the tokenizer does not know %q", t.Place, string(t.Text.Unknown)))
		}
		left = append(left, t)
		job.Do(i+1, len(own))
	}
	return left, nil
}

// rehearse speaks the longest of texts, and checks the memory that it took.
func (s *Speaker) rehearse(ctx context.Context, heard voices, texts []*text) error {
	began := time.Now()
	voice, err := heard.voice(ctx, s.speaker, texts[0].Voice)
	if err != nil {
		return err
	}
	var all []synthesize.Text
	for _, t := range texts {
		all = append(all, t.Text)
	}
	if err := s.speaker.Rehearse(ctx, voice, all...); err != nil {
		return err
	}
	s.Log.Info("samples rehearsed", "s", time.Since(began).Seconds())
	arenas, err := s.runtime.ArenaBytes()
	if err != nil {
		return err
	}
	return s.Check(arenas)
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

// Close releases the graphs, and closes the file of lines. It is idempotent.
func (s *Speaker) Close() error {
	if s == nil {
		return nil
	}
	err := s.file.Close()
	if s.runtime != nil {
		err = errors.Join(err, s.runtime.Close())
	}
	return err
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
