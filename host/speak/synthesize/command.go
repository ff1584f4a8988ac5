package synthesize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/sampling"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// Options are the flags of `xtts-host synthesize` that are no settings of a run.
type Options struct {
	Text, TextFile string
	Language       string
	Speakers       []string // files
	Out            string   // a file, or "-" for the standard output
	Seed           int64
	Sampling       manifest.Sampling
	// Given says which of Sampling replace the bundle's.
	Given func(flag string) bool
}

// maxText bounds a file of text, in bytes.
const maxText = 16 << 20

// Run runs the command. set.Resume names the run, set.Graph the bundle.
func Run(ctx context.Context, set *config.Set, o Options, console console.Console) (err error) {
	ctx, done := console.Stoppable(ctx, "operation")
	defer done()
	defer files.WaitWith(console.Patience(set.DiskWait))()
	defer func() { err = advise(err) }()
	out := o.says(console)
	text, err := o.text(ctx)
	if err == nil {
		err = o.writable()
	}
	if err != nil {
		return exit.Refused(err)
	}
	bundle, err := open(set)
	if err != nil {
		return exit.Refused(err)
	}
	settings, err := o.settings(bundle.Manifest.Synthesis)
	if err == nil {
		err = o.voiced(bundle.Manifest)
	}
	if err != nil {
		return exit.Refused(err)
	}
	tokenized, err := o.tokens(bundle, text, set.Normalize.Rules, console.Err)
	if err != nil {
		return exit.Refused(err)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	began := time.Now()
	m, err := openModel(ctx, set, bundle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if tokenized, err = o.trained(set, bundle, text, tokenized, m.rules); err != nil {
		return exit.Refused(err)
	}
	voice, err := m.speaker.Listen(ctx, o.Speakers)
	if err != nil {
		return fmt.Errorf("--speaker %w", err)
	}
	defer voice.Close()
	if err := m.warm(ctx, voice, tokenized); err != nil {
		return fmt.Errorf("before the first sound: %w", err)
	}
	visible.Fprintf(out, "weights      %s\nloaded       %.2f s\n", m.from, time.Since(began).Seconds())
	s, err := o.open(console.Out, m.speaker.Rate())
	if err != nil {
		return err
	}
	defer s.discard()
	u := utterance{speaker: m.speaker, voice: voice, settings: settings, sound: s, warnings: console.Err}
	u.waiting = console.Waiting()
	if set.Resume == "" {
		u.silence = "these are the initial weights of the bundle: --run RUN speaks with those of a run"
	}
	m.speaker.Made = func(units int) { u.waiting.Made(m.speaker.Unit(), units) }
	if err := u.speak(ctx, tokenized); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	fmt.Fprintln(out, u.summary(visible.Text(o.Out)))
	return nil
}

// advise adds the next step to an error of the model. Those of memory and of numbers have other hints in training.
func advise(err error) error {
	switch {
	case hint.Of(err) != "" || errors.Is(err, exit.ErrInterrupted):
		return err
	case exit.OutOfMemory(err):
		return hint.Errorf("end what else uses the memory of the device, or compute on the CPU: --device cpu", "%w",
			err)
	case errors.Is(err, sampling.ErrNotFinite), errors.Is(err, errFrame):
		return hint.Errorf("training has damaged the weights: speak with an earlier checkpoint, such as --run RUN@best",
			"%w", err)
	}
	return err
}

// text returns what is to be spoken.
func (o *Options) text(ctx context.Context) (string, error) {
	name, text := "--text", []byte(o.Text)
	var err error
	switch o.TextFile {
	case "":
	case "-":
		name = "--text-file -"
		text, err = stdin(ctx)
	default:
		name = "--text-file " + o.TextFile
		text, err = files.Read(o.TextFile, maxText)
		err = reason(err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	file := o.TextFile
	if file == "-" {
		file = ""
	}
	if err := plain.Check(file, text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(plain.Trim(text)), nil
}

// trained returns the tokens of the text by the rules of the checkpoint, unless the user names others. tokens are those
// by the settings of the run, which may have changed after the checkpoint.
func (o *Options) trained(
	set *config.Set, bundle *ortgraphs.Bundle, text string, tokens Text, rules texts.Rules,
) (Text, error) {
	if config.Asked(set, "normalize") || rules == set.Normalize.Rules {
		return tokens, nil
	}
	return o.tokens(bundle, text, rules, io.Discard)
}

// tokens returns the tokens of the text. It warns of what the tokenizer does not know.
func (o *Options) tokens(bundle *ortgraphs.Bundle, text string, rules texts.Rules, warnings io.Writer) (Text, error) {
	tokenizer, err := NewTokenizer(bundle, rules)
	if err != nil {
		return Text{}, err
	}
	if _, letters := rules.Letters(); o.Language != "" && !tokenizer.Tagged() && !letters {
		return Text{}, hint.Errorf("leave it out", "--language %s: the model of %s has no languages", o.Language,
			bundle.Manifest.Name)
	}
	tokenized, err := tokenizer.Text(text, o.Language)
	if err != nil {
		return Text{}, err
	}
	if len(tokenized.Unknown) > 0 {
		visible.Fprintf(warnings, "warning: the tokenizer does not know %q\n", string(tokenized.Unknown))
	}
	return tokenized, nil
}

// reason is the error of a file whose path is in the message already.
func reason(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file.Err
	}
	return err
}

// stdin returns the text of the standard input. Its reader stays when ctx ends before the text does.
func stdin(ctx context.Context) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	read, input := make(chan result, 1), os.Stdin
	go func() {
		b, err := io.ReadAll(io.LimitReader(input, maxText+1))
		if err == nil && len(b) > maxText {
			err = fmt.Errorf("more than %d MiB", maxText>>20)
		}
		read <- result{b, err}
	}()
	select {
	case r := <-read:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// says is where the command writes what it does: not into the sound.
func (o *Options) says(console console.Console) io.Writer {
	if o.Out == "-" {
		return console.Err
	}
	return console.Out
}

// writable returns an error if --out cannot be written, before the weights are read.
func (o *Options) writable() error {
	if o.Out == "-" {
		return nil
	}
	if ending := filepath.Ext(o.Out); !strings.EqualFold(ending, ".wav") {
		return hint.Errorf("--out speech.wav, or --out - for the standard output",
			"--out %s: only WAV files are written", o.Out)
	}
	if info, err := os.Stat(o.Out); err == nil && info.IsDir() {
		return hint.Errorf("name a file in it", "--out %s is a folder", o.Out)
	}
	if _, err := os.Stat(filepath.Dir(o.Out)); err != nil {
		return hint.Errorf("make the folder first", "--out %s: %w", o.Out, err)
	}
	return nil
}

// open opens the output.
func (o *Options) open(stdout io.Writer, rate int) (*sound, error) {
	if o.Out == "-" {
		return stream(stdout, rate)
	}
	s, err := create(files.At(o.Out), rate)
	if err != nil {
		return nil, exit.Refused(hint.Errorf("name a file that can be written", "--out: %w", err))
	}
	return s, nil
}

// settings returns the bundle's settings of sampling with those that are given in their place. A model of frames takes
// none.
func (o *Options) settings(bundle *manifest.Synthesis) (sampling.Settings, error) {
	s := defaults(bundle)
	for flag, replace := range map[string]func(){
		"temperature":        func() { s.Temperature = o.Sampling.Temperature },
		"top-k":              func() { s.TopK = o.Sampling.TopK },
		"top-p":              func() { s.TopP = o.Sampling.TopP },
		"repetition-penalty": func() { s.RepetitionPenalty = o.Sampling.RepetitionPenalty },
	} {
		if !o.Given(flag) {
			continue
		}
		if bundle.Codes == nil {
			return sampling.Settings{},
				hint.Errorf("leave it out", "--%s chooses codes, and the model predicts frames", flag)
		}
		replace()
	}
	return settings(s, o.Seed), nil
}

// defaults returns the bundle's settings of sampling. A model of frames has none.
func defaults(bundle *manifest.Synthesis) manifest.Sampling {
	if bundle.Codes == nil {
		return manifest.Sampling{}
	}
	return bundle.Codes.Sampling
}

func settings(s manifest.Sampling, seed int64) sampling.Settings {
	return sampling.Settings{
		Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP, RepetitionPenalty: s.RepetitionPenalty,
		Seed: uint64(seed),
	}
}

// voiced returns an error if clips are missing, or if the model speaks without.
func (o *Options) voiced(bundle *manifest.Bundle) error {
	switch voiced := bundle.Speaks(manifest.GraphConditioning); {
	case voiced && len(o.Speakers) == 0:
		return hint.Errorf("for example: --speaker me.wav", "--speaker is missing: a clip of the voice")
	case !voiced && len(o.Speakers) > 0:
		return hint.Errorf("leave it out", "--speaker %s: the bundle %s has one voice", o.Speakers[0], bundle.Name)
	}
	return nil
}

// open opens the bundle, which must speak.
func open(set *config.Set) (*ortgraphs.Bundle, error) {
	cache, err := config.CacheFolder(set.CacheDir)
	if err != nil {
		return nil, err
	}
	bundle, err := ortgraphs.Open(set.Graph, cache)
	if err != nil {
		return nil, err
	}
	return bundle, Speaks(bundle, set.Graph)
}

// Speaks returns an error if a bundle, which that value of --graph names, does not speak.
func Speaks(bundle *ortgraphs.Bundle, graph string) error {
	if bundle.Manifest.Synthesis == nil {
		return hint.Errorf("`xtts-export xtts-v2` and `xtts-export myxtts` write bundles that speak, which --graph "+
			"can name (docs/synthesize.md)",
			"the bundle %s has no graphs that speak", graph)
	}
	return nil
}

// threads is the number of CPU threads that compute.
func threads(set *config.Set) int { return cmp.Or(set.Threads, runtime.GOMAXPROCS(0)) }
