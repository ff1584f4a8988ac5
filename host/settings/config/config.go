// Package config holds the settings of a run: the flag of each, its default, and where its value came from.
//
// A value comes from the flag, else from the environment (XTTS_HOST_BATCH_SIZE for --batch-size), else from the
// file that --config names, else from the run that --resume names, else from the bundle (learning rate, schedule,
// ...), else it is the default:
//
//	s := config.New()
//	if err := s.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	s.TakeBundle(b.Manifest)
//	train(s.Config)
//
// A command line with flags of its own adds those of Groups to them, parses all, and calls Load.
package config

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Config holds the values of all settings. The flags' help says what each means.
type Config struct {
	Plugins, Graph, TrainData, ValData, RunDir, Resume, Init string
	ListLayout, ValListLayout                                string // as dataset.Config.Layout
	ResumeAt                                                 string // of --resume RUN@AT: "best", "last", a step, or ""
	ResumeOrStart                                            string
	FirstInit                                                string   // --init of the run that continues, when it began
	Allow                                                    []string // what a resumed run may change
	ValShare                                                 float64  // of the recordings, to hold out of training
	Normalize                                                Rules    // changes of texts
	Augment                                                  []string
	Freeze, TrainOnly                                        []string // patterns of parameters
	// Pipeline replaces the bundle's when a config file gives one; nil leaves it.
	Pipeline []manifest.StageInstance
	// PipelineFile is that config file.
	PipelineFile string

	Epochs                int // 0: as many as MaxSteps takes
	MaxSteps              int64
	BatchSize, Accumulate int
	Buckets               Buckets
	Seed                  int64
	LR, MinLR             float64
	WarmupSteps           int64
	Schedule              string
	LRDecay               float64 // exponential: factor of a step
	PlateauFactor         float64
	PlateauPatience       int // evaluations
	WeightDecay, GradClip float64
	LRFactor              []string // PATTERN=FACTOR
	WeightDecayOf         []string // PATTERN=DECAY
	EMA                   float64  // decay; 0: none
	MaxSkipped            int

	EvalEvery, CheckpointEvery, LogEvery int64
	CheckpointMinutes                    float64
	DiskWait                             float64 // seconds
	KeepLast                             int
	EarlyStop                            int // evaluations; 0: never
	EarlyStopDelta                       float64
	Samples                              string   // file; empty: none
	SpokenClips                          int      // 0: none
	Probe                                []string // patterns of what evaluations show
	Recognizer                           string   // command; empty: none
	BestBy                               string   // "loss", a metric, or "spoken." and a measure
	TensorBoard                          bool
	KeepMedia                            int    // evaluations; 0: all
	Metrics, Dashboard                   string // addresses; empty: none
	Version                              string // of the program, which the figures have

	NumWorkers, Threads, BufferSize int
	PluginWorkers                   map[string]int
	PluginData                      map[string]string // data folders of stages, by NAME or INSTANCE.NAME
	PluginTimeout                   float64           // seconds; 0: by measurement
	PluginStartTimeout              float64           // seconds
	PluginMemory                    Limit             // of a process; 0: what its plugin.json says
	Sandbox                         Switch            // of the plugins
	RingMemory                      Bytes
	Adaptive                        bool
	FeatureCache                    string // folder; empty: none
	FeatureCacheSize                Bytes
	Slots                           SlotCount
	ModelStartDelay                 float64 // seconds
	StaticShapes                    bool

	World             world.World // of the launcher, not of a flag: the processes that train together
	RankTimeout       float64     // seconds
	RankSums          RankSums
	Device            Device
	Precision         Precision // of the training graph
	CUDAGraphs        Switch
	Fuse              Switch
	Attention         Attention
	Deterministic     bool
	DataGPU, ModelGPU GPU
	MemoryIsolation   bool
	DataGPUMemory     Limit
	ModelGPUMemory    Limit
	MemoryBaseline    Limit
	MaxQuarantine     int // rows; -1 means max(1, 1 %)
	RequireChecksums  bool
	RequireSignatures bool
	PluginsLock       string // file; empty for none
	VerifyPlugins     bool
	OnRange           OnRange
	ORTLib, CacheDir  string
	CacheUnconfirmed  bool // only a run folder names CacheDir

	Debug      bool // plugins have no deadlines
	DebugDir   string
	Trace      string // file
	TraceSteps int
	TraceNaN   bool
}

// DefaultSpokenClips is the default of --spoken-clips.
const DefaultSpokenClips = 2

// Set is a Config, the flags that fill it, and the origin of every value.
type Set struct {
	Config
	// ResumeFlag is the flag that names Config.Resume, as errors print it: --resume, or --run of evaluate.
	ResumeFlag string
	// Silent is set by a command that speaks nothing at evaluations, whatever the run of Config.Resume spoke.
	Silent bool
	// Only names the settings that are flags of the command; nil means all of them.
	Only []string

	groups  []Group
	flags   *pflag.FlagSet // all of them
	file    string         // --config
	print   bool           // --print-config
	origins map[string]string
	before  map[string]string // the origins in the file of the run that continues, by key
	folders map[string]string // the origins of the data folders, by their names
}

// Group is the flags of one subject.
type Group struct {
	Title string
	Flags *pflag.FlagSet
}

// New returns the defaults.
func New() *Set {
	s := &Set{
		ResumeFlag: "--resume", flags: pflag.NewFlagSet("xtts-host", pflag.ContinueOnError),
		origins: map[string]string{}, folders: map[string]string{},
	}
	s.flags.Usage = func() {} // an error is one line and a hint, not the whole help
	s.define()
	for _, g := range s.groups {
		s.flags.AddFlagSet(g.Flags)
	}
	return s
}

// Groups returns the flags in the order of the help.
func (s *Set) Groups() []Group { return s.groups }

// PrintConfig reports whether to print the settings instead of using them.
func (s *Set) PrintConfig() bool { return s.print }

// TakeBundle fills settings that flags and environment left open with the bundle's defaults.
func (s *Set) TakeBundle(b *manifest.Bundle) {
	take := func(name, value string) {
		if s.origins[name] != "" {
			return
		}
		if err := s.flags.Lookup(name).Value.Set(value); err != nil {
			panic(fmt.Sprintf("config: the bundle's %s %q: %v", name, value, err)) // the bundle's schema rules it out
		}
		s.origins[name] = fromBundle
	}
	last := b.Last()
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	take("lr", number(last.Optimizer.LR))
	take("weight-decay", number(last.Optimizer.WeightDecay))
	take("grad-clip", number(last.Optimizer.GradClip))
	take("warmup-steps", strconv.Itoa(last.Schedule.WarmupSteps))
	take("schedule", last.Schedule.Name)
}

// Given reports whether the user has given the setting: by a flag, the environment or a file.
func (s *Set) Given(name string) bool {
	origin := s.origins[name]
	return origin != "" && origin != fromBundle
}

// Asked reports whether the user has asked for the value of a setting: by a flag, the environment, or a file that has
// another than the default. Files that a run or --print-config wrote have all defaults.
func Asked(s *Set, name string) bool {
	f := s.flags.Lookup(name)
	return s.Given(name) && !fromRunFile(s, name) &&
		(s.origins[name] == fromFlag || s.origins[name] == fromEnv || f.Value.String() != f.DefValue)
}

// OnCommandLine reports whether the user has given a flag of the group.
func OnCommandLine(s *Set, g Group) (given bool) {
	g.Flags.VisitAll(func(f *pflag.Flag) { given = given || s.origins[f.Name] == fromFlag })
	return given
}

// Put gives a setting another value, written as its flag takes it. Its origin stays.
func Put(s *Set, name, value string) error {
	f := s.flags.Lookup(name)
	if f == nil {
		return fmt.Errorf("there is no setting %q", name)
	}
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %s: %w", name, value, reason(f, err))
	}
	return nil
}
