// Package config is what a run is told: every setting, its flag, its default, and where its value came from.
//
// A value comes from the flag, else from the environment (XTTS_HOST_BATCH_SIZE for --batch-size), else from the
// file that --config names, else from the run that --resume names, else from the bundle (learning rate, schedule, ...), else it is the default:
//
//	s := config.New()
//	if err := s.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	s.TakeBundle(b.Manifest)
//	train(s.Config)
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Config holds the values. The flags' help says what each means.
type Config struct {
	Plugins, Graph, TrainData, ValData, RunDir, Resume, Init string
	Augment                                                  []string
	// Pipeline replaces the bundle's when a config file gives one; nil leaves it.
	Pipeline []manifest.StageInstance

	Epochs                int
	MaxSteps              int64
	BatchSize, Accumulate int
	Seed                  int64
	LR                    float64
	WarmupSteps           int64
	Schedule              string
	WeightDecay, GradClip float64
	MaxSkipped            int

	EvalEvery, CheckpointEvery, LogEvery int64
	KeepLast                             int

	NumWorkers, Threads, BufferSize int
	PluginWorkers                   map[string]int
	RingMemory                      Bytes
	Slots                           Auto
	ModelStartDelay                 float64 // seconds
	StaticShapes                    bool

	Device           string
	MaxQuarantine    int // rows; -1 means max(1, 1 %)
	RequireChecksums bool
	ORTLib, CacheDir string
}

// RunFile is the name of the file in a run's folder that holds its settings.
const RunFile = "config.yaml"

// Set is a Config, the flags that fill it, and the origin of every value.
type Set struct {
	Config
	sections []section
	flags    *pflag.FlagSet // all of them
	file     string         // --config
	print    bool           // --print-config
	origins  map[string]string
}

// section is a part of the help.
type section struct {
	title string
	flags *pflag.FlagSet
}

// New returns the defaults.
func New() *Set {
	s := &Set{flags: pflag.NewFlagSet("xtts-host", pflag.ContinueOnError), origins: map[string]string{}}
	s.flags.Usage = func() {} // an error is one line and a hint, not the whole help
	c := &s.Config

	f := s.section("What to train, and on what")
	f.StringVar(&c.Plugins, "plugins", "plugins", "`folder` of plugins")
	f.StringVar(&c.Graph, "graph", "builtin:myxtts-nano", "bundle `folder`, or builtin:NAME")
	f.StringVar(&c.TrainData, "train-data", "", "LJSpeech `folder`; without it the embedded sample")
	f.StringVar(&c.ValData, "val-data", "", "validation `folder`; without it metadata_eval.csv of the training data, if there is one")
	f.StringVar(&c.RunDir, "run-dir", "", "`folder` for the run's files (default runs/<UTC time>)")
	f.StringVar(&c.Resume, "resume", "", "go on with the run in that `folder`")
	f.StringVar(&c.Init, "init", "", "begin with the weights of that safetensors `file`, checkpoint or run, by name")
	f.StringSliceVar(&c.Augment, "augment", nil, "augmentations to add, as `stage,...`: on the waveform before the features, on the features behind them")
	f.StringVar(&s.file, "config", "", "YAML or JSON `file` with any of these settings (docs/config.schema.json)")
	f.BoolVar(&s.print, "print-config", false, "print every setting with its origin, and end")

	f = s.section("Length and batches")
	f.IntVar(&c.Epochs, "epochs", 100, "passes over the training data")
	f.Int64Var(&c.MaxSteps, "max-steps", 0, "end after that many optimizer steps; 0: after the epochs")
	f.IntVar(&c.BatchSize, "batch-size", 16, "rows of a batch")
	f.IntVar(&c.Accumulate, "accumulate", 1, "batches of an optimizer step")
	f.Int64Var(&c.Seed, "seed", 1, "order, references, augmentation and dropout are functions of it")
	f.BoolVar(&c.StaticShapes, "enable-static-shapes", false, "pad every batch to the largest bucket")

	f = s.section("Optimizer (defaults come from the bundle)")
	f.Float64Var(&c.LR, "lr", 0, "learning `rate` behind the warm-up")
	f.Int64Var(&c.WarmupSteps, "warmup-steps", 0, "`steps` in which the learning rate rises")
	f.StringVar(&c.Schedule, "schedule", "", "constant or cosine, behind the warm-up")
	f.Float64Var(&c.WeightDecay, "weight-decay", 0, "decoupled weight decay")
	f.Float64Var(&c.GradClip, "grad-clip", 0, "largest gradient `norm`; 0: no clipping")
	f.IntVar(&c.MaxSkipped, "max-skipped", 10, "stop after that many skipped steps in a row")

	f = s.section("Evaluation, checkpoints, log")
	f.Int64Var(&c.EvalEvery, "eval-every", 0, "`steps` between evaluations; 0: after every epoch")
	f.Int64Var(&c.CheckpointEvery, "checkpoint-every", 1000, "`steps` between checkpoints; 0: only at the end")
	f.IntVar(&c.KeepLast, "keep-last", 3, "checkpoints to keep beside the best; 0: all")
	f.Int64Var(&c.LogEvery, "log-every", 100, "`steps` between progress lines; 0: none")

	f = s.section("Pipeline")
	f.IntVar(&c.NumWorkers, "num-workers", 2, "batches decoded at the same time")
	f.Var((*workers)(&c.PluginWorkers), "plugin-workers", "processes of a plugin, as `ID=N`; may be repeated")
	f.IntVar(&c.BufferSize, "buffer-size", 50, "ring slots: batches in preparation")
	c.RingMemory = 1 << 30
	f.Var(&c.RingMemory, "ring-memory", "bound on the ring's `size`, in MB or with a unit")
	c.Slots = 3
	f.Var(&c.Slots, "slots", "device slots: 2 to 8, or auto")
	f.Float64Var(&c.ModelStartDelay, "model-start-delay", 2, "longest wait for the pipeline to warm up, in `seconds`")
	f.IntVar(&c.MaxQuarantine, "max-quarantine", -1, "stop when more `rows` are unusable; -1: 1 %, at least 1")

	f = s.section("Machine")
	f.StringVar(&c.Device, "device", "auto", "auto or cpu")
	f.IntVar(&c.Threads, "threads", 0, "threads of a training step; 0: all cores")
	f.BoolVar(&c.RequireChecksums, "require-checksums", false, "refuse plugins without checksums")
	f.StringVar(&c.ORTLib, "ort-lib", "", "`path` of libonnxruntime.so")
	f.StringVar(&c.CacheDir, "cache-dir", "", "`folder` for what can be made again (default the user's cache folder)")

	for _, part := range s.sections {
		s.flags.AddFlagSet(part.flags)
	}
	return s
}

func (s *Set) section(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	s.sections = append(s.sections, section{title, f})
	return f
}

// Usage returns the help of the flags, by section.
func (s *Set) Usage() string {
	var out strings.Builder
	for _, part := range s.sections {
		fmt.Fprintf(&out, "\n%s:\n%s", part.title, part.flags.FlagUsagesWrapped(100))
	}
	return out.String()
}

// envPrefix and the flag's name in capitals make the name of an environment variable.
const envPrefix = "XTTS_HOST_"

// Parse reads the command line and, for what it leaves open, the environment. Nothing but flags may stand on the
// command line. It returns pflag.ErrHelp for --help.
func (s *Set) Parse(args, environ []string) error {
	if err := s.flags.Parse(args); err != nil {
		return err
	}
	if s.flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", s.flags.Arg(0))
	}
	s.flags.Visit(func(f *pflag.Flag) { s.origins[f.Name] = "flag" })
	env := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && strings.HasPrefix(name, envPrefix) {
			env[name] = value
		}
	}
	var err error
	s.flags.VisitAll(func(f *pflag.Flag) {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := env[name]
		if !ok || value == "" || s.origins[f.Name] != "" || err != nil {
			return
		}
		if e := f.Value.Set(value); e != nil {
			err = fmt.Errorf("%s=%s: %w", name, value, e)
		}
		s.origins[f.Name] = "environment"
	})
	if err != nil {
		return err
	}
	if s.file != "" {
		if err := s.readFile(s.file); err != nil {
			return err
		}
	}
	if s.Resume != "" {
		// A run goes on with its own settings. What is given beside them has come first.
		if err := s.readFile(filepath.Join(s.Resume, RunFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.check()
}

// PrintConfig reports whether the settings are to be printed instead of used.
func (s *Set) PrintConfig() bool { return s.print }

// check refuses values that no run can use.
func (s *Set) check() error {
	c := &s.Config
	for _, n := range []struct {
		flag       string
		value, min int64
	}{
		{"epochs", int64(c.Epochs), 1}, {"max-steps", c.MaxSteps, 0}, {"batch-size", int64(c.BatchSize), 1}, {"accumulate", int64(c.Accumulate), 1},
		{"warmup-steps", c.WarmupSteps, 0}, {"max-skipped", int64(c.MaxSkipped), 1}, {"eval-every", c.EvalEvery, 0},
		{"checkpoint-every", c.CheckpointEvery, 0}, {"keep-last", int64(c.KeepLast), 0}, {"log-every", c.LogEvery, 0},
		{"num-workers", int64(c.NumWorkers), 1}, {"threads", int64(c.Threads), 0}, {"buffer-size", int64(c.BufferSize), 1}, {"max-quarantine", int64(c.MaxQuarantine), -1},
	} {
		if n.value < n.min {
			return fmt.Errorf("--%s %d: the smallest value is %d", n.flag, n.value, n.min)
		}
	}
	for flag, value := range map[string]float64{"lr": c.LR, "weight-decay": c.WeightDecay, "grad-clip": c.GradClip, "model-start-delay": c.ModelStartDelay} {
		if !(value >= 0) {
			return fmt.Errorf("--%s %v: must not be negative", flag, value)
		}
	}
	if !slices.Contains([]string{"", "constant", "cosine"}, c.Schedule) {
		return fmt.Errorf("--schedule %s: it is constant or cosine", c.Schedule)
	}
	if !slices.Contains([]string{"auto", "cpu"}, c.Device) {
		return fmt.Errorf("--device %s: it is auto or cpu", c.Device)
	}
	if c.Resume != "" && c.RunDir != "" {
		return fmt.Errorf("--resume %s goes on in that folder: --run-dir %s does not go with it", c.Resume, c.RunDir)
	}
	if c.Resume != "" && c.Init != "" {
		return fmt.Errorf("--resume %s has weights of its own: --init %s does not go with it", c.Resume, c.Init)
	}
	return nil
}

// TakeBundle fills what flags and environment left open with the bundle's defaults.
func (s *Set) TakeBundle(b *manifest.Bundle) {
	take := func(name, value string) {
		if s.origins[name] != "" {
			return
		}
		if err := s.flags.Lookup(name).Value.Set(value); err != nil {
			panic(fmt.Sprintf("config: the bundle's %s %q: %v", name, value, err)) // the bundle's schema knows better
		}
		s.origins[name] = "bundle"
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	take("lr", number(b.Optimizer.LR))
	take("weight-decay", number(b.Optimizer.WeightDecay))
	take("grad-clip", number(b.Optimizer.GradClip))
	take("warmup-steps", strconv.Itoa(b.Schedule.WarmupSteps))
	take("schedule", b.Schedule.Name)
}

// Note records why a setting has another value than it was given.
func (s *Set) Note(name, origin string) { s.origins[name] = origin }

// YAML returns every setting with its origin as a comment, in the order of the help.
func (s *Set) YAML() string {
	var out strings.Builder
	for _, part := range s.sections {
		fmt.Fprintf(&out, "# %s\n", part.title)
		part.flags.VisitAll(func(f *pflag.Flag) {
			origin := s.origins[f.Name]
			if origin == "" {
				origin = "default"
			}
			if !isSetting(f) {
				return
			}
			value := f.Value.String()
			if t := f.Value.Type(); t == "string" || t == "ID=N" {
				value = strconv.Quote(value)
			}
			fmt.Fprintf(&out, "%s: %s  # %s\n", key(f.Name), value, origin)
		})
	}
	if s.Pipeline != nil {
		list, err := json.Marshal(s.Pipeline) // JSON is YAML
		if err != nil {
			panic(err) // it came from JSON
		}
		fmt.Fprintf(&out, "%s: %s  # %s\n", pipelineKey, list, s.origins[pipelineKey])
	}
	return out.String()
}
