// Package config is what a run is told: every setting, its flag, its default, and where its value came from.
//
// A value comes from the flag, else from the environment (XTTS_HOST_BATCH_SIZE for --batch-size), else from the
// file that --config names, else from the run that --resume names, else from the bundle (learning rate, schedule,
// ...), else it is the default:
//
//	s := config.New()
//	if err := s.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	s.TakeBundle(b.Manifest)
//	train(s.Config)
package config

import (
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
	Freeze, TrainOnly                                        []string // patterns of parameters
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
	PluginTimeout                   float64 // seconds; 0: by measurement
	PluginStartTimeout              float64 // seconds
	RingMemory                      Bytes
	Slots                           Auto
	ModelStartDelay                 float64 // seconds
	StaticShapes                    bool

	Device            string
	Precision         string // of the training graph
	CUDAGraphs        string
	Deterministic     bool
	DataGPU, ModelGPU GPU
	MemoryIsolation   bool
	DataGPUMemory     Limit
	ModelGPUMemory    Limit
	MemoryBaseline    Limit
	MaxQuarantine     int // rows; -1 means max(1, 1 %)
	RequireChecksums  bool
	ORTLib, CacheDir  string

	DebugDir   string
	Trace      string // file
	TraceSteps int
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
	f.StringVar(&c.TrainData, "train-data", "", "data set: LJSpeech `folder`, or JSON Lines file; without it the embedded sample")
	f.StringVar(&c.ValData, "val-data", "", "validation data set, `folder` or file; without it the list for evaluation in the training data's folder, if there is one")
	f.StringVar(&c.RunDir, "run-dir", "", "`folder` for the run's files (default runs/<UTC time>)")
	f.StringVar(&c.Resume, "resume", "", "go on with the run in that `folder`")
	f.StringVar(&c.Init, "init", "", "begin with the weights of that safetensors `file`, checkpoint or run, by name")
	f.StringSliceVar(&c.Augment, "augment", nil, "augmentations to add, as `stage,...`: on the waveform before the features, on the features behind them")
	f.StringSliceVar(&c.Freeze, "freeze", nil, "parameters not to train, as `pattern,...` of names: decoder.norm (a tensor or module), *.bias")
	f.StringSliceVar(&c.TrainOnly, "train-only", nil, "parameters to train, as `pattern,...`: all others are frozen")
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
	f.Int64Var(&c.LogEvery, "log-every", 100, "`steps` between progress lines, with the memory of the GPUs; 0: none")

	f = s.section("Pipeline")
	f.IntVar(&c.NumWorkers, "num-workers", 2, "batches decoded at the same time")
	f.Var((*workers)(&c.PluginWorkers), "plugin-workers", "processes of a plugin, as `ID=N`; may be repeated")
	f.Float64Var(&c.PluginTimeout, "plugin-timeout", 0, "longest time for a batch in a stage, in `seconds`; 0: 20 times what its batches take, at least 30")
	f.Float64Var(&c.PluginStartTimeout, "plugin-start-timeout", 0, "longest time for a plugin to start, and again to be configured, in `seconds`; 0: 30 and 60")
	f.IntVar(&c.BufferSize, "buffer-size", 50, "ring slots: batches in preparation")
	c.RingMemory = 1 << 30
	f.Var(&c.RingMemory, "ring-memory", "bound on the ring's `size`, in MB or with a unit")
	c.Slots = 3
	f.Var(&c.Slots, "slots", "device slots: 2 to 8, or auto")
	f.Float64Var(&c.ModelStartDelay, "model-start-delay", 2, "longest wait for the pipeline to warm up, in `seconds`")
	f.IntVar(&c.MaxQuarantine, "max-quarantine", -1, "stop when more `rows` of a list are unusable; -1: 1 %, at least 1")

	f = s.section("Machine")
	f.StringVar(&c.Device, "device", "auto", "auto, cpu or cuda")
	f.StringVar(&c.Precision, "precision", "auto", "of matrix products: f32, tf32 (GPUs only; operands rounded to 10 bits of mantissa), or auto: tf32 on a GPU, f32 on the CPU")
	f.StringVar(&c.CUDAGraphs, "cuda-graphs", "auto", "replay captured steps on a GPU: auto (if the graph can be captured and replays right), on, or off")
	f.BoolVar(&c.Deterministic, "deterministic", false, "on a GPU take slower kernels that give the same bits in every run")
	f.IntVar(&c.Threads, "threads", 0, "threads of a training step; 0: all cores")
	f.BoolVar(&c.RequireChecksums, "require-checksums", false, "refuse plugins without checksums")
	f.StringVar(&c.ORTLib, "ort-lib", "", "`path` of libonnxruntime.so")
	f.StringVar(&c.CacheDir, "cache-dir", "", "`folder` for what can be made again (default the user's cache folder)")

	f = s.section("GPUs")
	f.Var(&c.DataGPU, "data-gpu", "the plugins' `GPU`: index, UUID or its beginning, auto; cpu: none; goes with --model-gpu")
	f.Var(&c.ModelGPU, "model-gpu", "the `GPU` that trains; without the two flags the first, with the plugins on the CPU")
	f.BoolVar(&c.MemoryIsolation, "enable-memory-isolation", false, "hold each role to its limit of GPU memory")
	c.DataGPUMemory, c.ModelGPUMemory = 8<<30, 16<<30
	f.Var(&c.DataGPUMemory, "data-gpu-memory", "`size` that the plugins may use together, in MB or with a unit; auto: 33 % of the GPU")
	f.Var(&c.ModelGPUMemory, "model-gpu-memory", "`size` that training may use, in MB or with a unit; auto: 67 % of the GPU")
	f.Var(&c.MemoryBaseline, "memory-baseline", "`size` that training uses when it is warm, above which it grows, in MB or with a unit; auto: measured")

	f = s.section("Debugging")
	f.StringVar(&c.DebugDir, "debug-dir", "", "`folder` for the rows of each step and the memory over time, and for tests to stop the run from (docs/torture.md)")
	f.StringVar(&c.Trace, "trace", "", "`file` for a timeline of the run, which ui.perfetto.dev opens (docs/timeline.md)")
	f.IntVar(&c.TraceSteps, "trace-steps", 200, "steps that the timeline has at most")

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

// The origins of values. That of a value in a config file is the file's path, and a Note may say more.
const (
	fromFlag   = "flag"
	fromEnv    = "environment"
	fromBundle = "bundle"
	isDefault  = "default"
)

// Parse reads the command line and, for what it leaves open, the environment. Nothing but flags may stand on the
// command line. It returns pflag.ErrHelp for --help.
func (s *Set) Parse(args, environ []string) error {
	if err := s.flags.Parse(args); err != nil {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return fmt.Errorf("--%s %s: %w", bad.GetFlag().Name, bad.GetValue(), reason(bad.Unwrap()))
		}
		return err
	}
	if s.flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", s.flags.Arg(0))
	}
	s.flags.Visit(func(f *pflag.Flag) { s.origins[f.Name] = fromFlag })
	if err := s.readEnv(environ); err != nil {
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

func (s *Set) readEnv(environ []string) (err error) {
	env := map[string]string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && strings.HasPrefix(name, envPrefix) {
			env[name] = value
		}
	}
	s.flags.VisitAll(func(f *pflag.Flag) {
		value := env[envName(f)]
		if value == "" || !s.open(f, fromEnv) || err != nil {
			return
		}
		if e := f.Value.Set(value); e != nil {
			err = fmt.Errorf("%s=%s: %w", envName(f), value, reason(e))
		}
		s.origins[f.Name] = fromEnv
	})
	return err
}

func envName(f *pflag.Flag) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// exclusive lists what does not go together: the folder of a run to go on with, and what only a new run has; what is
// frozen, and what is not.
var exclusive = map[string][]string{
	"resume": {"run-dir", "init"}, "run-dir": {"resume"}, "init": {"resume"},
	"freeze": {"train-only"}, "train-only": {"freeze"},
}

// open reports whether a source may fill a flag: nothing that goes before it has, and nothing that goes before it
// excludes the flag. So --resume RUN works beside a config file with a run_dir.
func (s *Set) open(f *pflag.Flag, source string) bool {
	for _, other := range exclusive[f.Name] {
		if had := s.origins[other]; had != "" && had != source {
			return false
		}
	}
	// So a run on GPUs goes on with --device cpu.
	if device := s.origins["device"]; s.Device == "cpu" && device != "" && device != source && slices.Contains(gpuFlags, f.Name) {
		return false
	}
	return s.origins[f.Name] == ""
}

// reason words for people why a value cannot be read.
func reason(err error) error {
	bad, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case !ok:
		return err
	case errors.Is(bad.Err, strconv.ErrRange):
		return errors.New("out of range")
	case bad.Func == "ParseBool":
		return errors.New("neither true nor false")
	case bad.Func == "ParseFloat":
		return errors.New("not a number")
	}
	return errors.New("not a whole number")
}

// PrintConfig reports whether the settings are to be printed instead of used.
func (s *Set) PrintConfig() bool { return s.print }

// TakeBundle fills what flags and environment left open with the bundle's defaults.
func (s *Set) TakeBundle(b *manifest.Bundle) {
	take := func(name, value string) {
		if s.origins[name] != "" {
			return
		}
		if err := s.flags.Lookup(name).Value.Set(value); err != nil {
			panic(fmt.Sprintf("config: the bundle's %s %q: %v", name, value, err)) // the bundle's schema knows better
		}
		s.origins[name] = fromBundle
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
