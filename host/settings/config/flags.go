package config

import "github.com/spf13/pflag"

// The titles of the groups whose flags describe the machine, not the training.
const (
	MachineGroup = "Machine"
	GPUGroup     = "GPUs"
)

// define defines the flags, in the order of the help. Each help text has one sentence with the unit, and the default
// unless the library adds it.
func (s *Set) define() {
	c := &s.Config
	s.defineInputs(s.group("Model, data and run folder"))
	defineTraining(c, s.group("Length and batches"), s.group("Optimizer (defaults come from the bundle)"))

	f := s.group("Evaluation, checkpoints, log")
	f.Int64Var(&c.EvalEvery, "eval-every", 0, "`steps` between evaluations (default 0: after every epoch)")
	f.StringVar(&c.Samples, "samples", "", "`file` with sentences to speak at each evaluation, one in each line, or "+
		"JSON Lines with voices (docs/synthesize.md)")
	f.IntVar(&c.SpokenClips, "spoken-clips", DefaultSpokenClips, "`clips` of the validation data to speak and to "+
		"compare at each evaluation, if the bundle speaks (docs/speech-measures.md); 0 means none. Without the flag, "+
		"some evaluations speak none if speaking is slow")
	f.StringSliceVar(&c.Probe, "probe", nil, "`patterns` of tensors to show at each evaluation, separated by commas: "+
		"probes of the bundle, gradient/PATTERN and parameter/PATTERN (docs/probes.md)")
	f.StringVar(&c.Recognizer, "recognizer", "", "`command` that transcribes the audio file {wav}, for the word error "+
		"rate of the speech of evaluations; it is run without a shell (docs/speech-measures.md)")
	f.StringVar(&c.BestBy, "best-by", "loss", "`measure` by which evaluations are compared, for the best checkpoint, "+
		"--early-stop and the schedule plateau: loss, a metric of the bundle, or a measure of speech such as "+
		"spoken.mcd_db (docs/schedules.md)")
	f.IntVar(&c.EarlyStop, "early-stop", 0,
		"end the run after this many `evaluations` in a row without an improvement; 0 means never")
	f.Float64Var(&c.EarlyStopDelta, "early-stop-delta", 0,
		"`difference` of the loss, or of the measure of --best-by, that an improvement must exceed for --early-stop")
	f.Int64Var(&c.CheckpointEvery, "checkpoint-every", 1000, "`steps` between checkpoints; 0 means only at the end")
	f.Float64Var(&c.CheckpointMinutes, "checkpoint-minutes", 0,
		"`minutes` after the last checkpoint until the next, in addition to --checkpoint-every; 0 means no limit")
	f.IntVar(&c.KeepLast, "keep-last", 3,
		"`checkpoints` to keep in addition to the best one and the last good one (docs/runs.md); 0 means all")
	f.Float64Var(&c.DiskWait, "disk-wait", 60,
		"longest time to wait for a full or failing disk, in `seconds` (docs/disk.md)")
	f.Int64Var(&c.LogEvery, "log-every", 100, "`steps` between progress lines; 0 means none")
	f.BoolVar(&c.TensorBoard, "tensorboard", true, "write curves, speech and pictures for TensorBoard into the run "+
		"folder (docs/monitoring.md); --tensorboard=false writes none")
	f.IntVar(&c.KeepMedia, "keep-media", 0, "last `evaluations` whose speech and pictures are kept, in addition to "+
		"the best one (docs/monitoring.md); 0 means all")
	f.StringVar(&c.Metrics, "metrics", "", "`address` at which the run serves its figures to Prometheus and answers "+
		"probes of its health, such as 127.0.0.1:9464 (docs/monitoring.md); default: none")
	f.StringVar(&c.Dashboard, "dashboard", "", "`address` at which the run serves a page about itself, such as "+
		"127.0.0.1:8080 (docs/dashboard.md); default: none")

	definePipeline(c, s.group("Pipeline"))
	defineMachine(c, s.group(MachineGroup), s.group(GPUGroup))

	f = s.group("Debugging")
	f.BoolVar(&c.Debug, "debug", false, "switch off all deadlines of plugins, and print the process id of each, to "+
		"attach a debugger (docs/plugin-reference.md)")
	f.StringVar(&c.DebugDir, "debug-dir", "",
		"`folder` for debug records: rows of each step, memory samples (docs/torture.md)")
	f.StringVar(&c.Trace, "trace", "",
		"`file` for a timeline of the run, to open in ui.perfetto.dev (docs/timeline.md)")
	f.BoolVar(&c.TraceNaN, "trace-nan", true, "find the operation and the clips of a loss that is not finite "+
		"(docs/nan.md); --trace-nan=false switches this off")
	f.IntVar(&c.TraceSteps, "trace-steps", 200, "largest number of `steps` in the timeline")
}

func (s *Set) group(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	s.groups = append(s.groups, Group{title, f})
	return f
}

func (s *Set) defineInputs(f *pflag.FlagSet) {
	c := &s.Config
	f.StringVar(&c.Plugins, "plugins", "plugins", "`folder` of the plugins")
	f.StringVar(&c.Graph, "graph", "builtin:myxtts-nano",
		"`folder` of the graph bundle, or builtin:NAME for an embedded one")
	f.StringVar(&c.TrainData, "train-data", "", "`path` of a data set's folder or list to train on: LJSpeech, coqui, "+
		"Common Voice and others (docs/data.md; default: the embedded sample)")
	f.StringVar(&c.ValData, "val-data", "",
		"`path` of a folder or file to evaluate on (default: the training data's evaluation list, if any)")
	f.Float64Var(&c.ValShare, "val-share", 0.05, "`share` of the recordings to evaluate on and not to train on, if "+
		"nothing else names validation data; 0 means none (docs/data.md)")
	f.StringVar(&c.ListLayout, "list-layout", "auto",
		"`layout` of the list: auto, a name of docs/data.md, or its columns, as in columns=id,text,speaker")
	f.StringVar(&c.ValListLayout, "val-list-layout", "auto", "`layout` of the list of --val-data")
	f.Var(&c.Normalize, "normalize", "`rules` that write letters, digits and marks of several forms in one, separated "+
		"by commas: all, or some of forms, invisible, letters, digits, punctuation, spaces; letters:fa names the "+
		"language of texts without one; none changes nothing (docs/data.md)")
	f.StringVar(&c.RunDir, "run-dir", "", "`folder` for the files of a new run (default runs/<UTC time>)")
	f.StringVar(&c.Resume, "resume", "", "continue the run in this `folder`; FOLDER@best, FOLDER@last and FOLDER@1200 "+
		"name a checkpoint of it, and later checkpoints are then removed")
	f.StringVar(&c.ResumeOrStart, "resume-or-start", "",
		"continue the run in this `folder`, or start it there when it has no checkpoint yet; for schedulers")
	f.StringSliceVar(&c.Allow, "allow", nil, "`settings` in which the resumed run may differ from its checkpoint, "+
		"separated by commas: lr, data and others (docs/resume.md)")
	f.StringVar(&c.Init, "init", "", "`path` of a safetensors file, checkpoint or run whose weights a new run starts "+
		"from; RUN@best, RUN@last and RUN@1200 name a checkpoint")
	f.StringSliceVar(&c.Augment, "augment", nil, "augmentation `stages` to add, separated by commas; noise:0.3 "+
		"for three of ten rows")
	f.StringSliceVar(&c.Freeze, "freeze", nil,
		"`patterns` of parameters not to train, separated by commas: decoder.norm (a tensor or module), *.bias")
	f.StringSliceVar(&c.TrainOnly, "train-only", nil,
		"`patterns` of parameters to train, separated by commas; all others are frozen")
	f.StringVar(&s.file, "config", "", "YAML or JSON `file` with settings (docs/config.schema.json)")
	f.BoolVar(&s.print, "print-config", false, "print every setting and its origin, then exit")
}

func defineTraining(c *Config, f, optimizer *pflag.FlagSet) {
	f.IntVar(&c.Epochs, "epochs", 100,
		"`passes` over the training data; with --max-steps and without this flag there is no limit")
	f.Int64Var(&c.MaxSteps, "max-steps", 0, "stop after this many optimizer `steps` (default 0: no limit)")
	f.IntVar(&c.BatchSize, "batch-size", 16, "`rows` (clips) per batch")
	f.Var(&c.Buckets, "buckets",
		"`lengths` that batches are padded to: auto (the host chooses those with the least padding), a number (it "+
			"chooses so many), bundle (those of the bundle), or a list in seconds such as 2.5s,5s,11s")
	f.IntVar(&c.Accumulate, "accumulate", 1, "`batches` per optimizer step")
	f.Int64Var(&c.Seed, "seed", 1, "`number` that determines batch order, reference clips, augmentation and dropout")
	f.BoolVar(&c.StaticShapes, "enable-static-shapes", false, "pad every batch to the largest bucket")

	f = optimizer
	f.Float64Var(&c.LR, "lr", 0, "learning `rate` after the warm-up, above 0 and at most 1e6")
	f.Int64Var(&c.WarmupSteps, "warmup-steps", 0, "`steps` over which the learning rate rises")
	choose(f, &c.Schedule, "schedule", "", "course of the learning rate after the warm-up (docs/schedules.md)")
	f.Float64Var(&c.MinLR, "min-lr", 0, "lowest learning `rate` after the warm-up, at most that of --lr")
	f.Float64Var(&c.LRDecay, "lr-decay", 0.9999,
		"`factor` of the learning rate in each step of the schedule exponential, 0 to 1")
	f.Float64Var(&c.PlateauFactor, "plateau-factor", 0.5,
		"`factor` by which the schedule plateau lowers the learning rate, 0 to 1")
	f.IntVar(&c.PlateauPatience, "plateau-patience", 3,
		"`evaluations` in a row without an improvement before the schedule plateau does so")
	f.Float64Var(&c.WeightDecay, "weight-decay", 0, "`factor` of the decoupled weight decay, 0 to 1e6")
	f.StringSliceVar(&c.LRFactor, "lr-factor", nil, "factors of the learning rate of some parameters, 0 to 1e6, as "+
		"`PATTERN=FACTOR`, separated by commas: text_encoder=0.1 (docs/groups.md)")
	f.StringSliceVar(&c.WeightDecayOf, "weight-decay-of", nil,
		"weight decay of some parameters, 0 to 1e6, as `PATTERN=DECAY`, separated by commas: *.bias=0 (docs/groups.md)")
	f.Float64Var(&c.GradClip, "grad-clip", 0, "largest gradient `norm`, up to 1e30; 0 means no clipping")
	f.Float64Var(&c.EMA, "ema", 0, "`decay`, 0 to 1, of a moving average of the weights, which is evaluated and saved "+
		"(docs/weights.md); 0 means none")
	f.IntVar(&c.MaxSkipped, "max-skipped", 10,
		"stop after this many skipped `steps` in a row; a run that skipped most of its steps fails at its end")
}

func definePipeline(c *Config, f *pflag.FlagSet) {
	f.IntVar(&c.NumWorkers, "num-workers", 0,
		"`batches` that are decoded at the same time (default 0: 2 on the CPU; on a GPU half of the cores, 2 to 8)")
	f.Var((*workers)(&c.PluginWorkers), "plugin-workers",
		"processes of a plugin, as `ID=N` (default 1 each); can be repeated")
	f.Var((*folders)(&c.PluginData), pluginData,
		"data folder of a stage, as `NAME=DIR` or INSTANCE.NAME=DIR; can be repeated (docs/plugin-reference.md)")
	f.Float64Var(&c.PluginTimeout, "plugin-timeout", 0,
		"time limit for a batch in a stage, in `seconds` (default 0: 20 times the usual time, at least 30)")
	f.Float64Var(&c.PluginStartTimeout, "plugin-start-timeout", 0,
		"time limit for the start of a plugin, and again for its configuration, in `seconds` (default 0: 30 and 60)")
	f.Var(&c.PluginMemory, "plugin-memory", "largest memory of a plugin process, as a `size` in MB or with a unit; "+
		"auto means memory_mb in its plugin.json, or no limit")
	choose(f, &c.Sandbox, "sandbox", AutoSwitch, "confine the processes of plugins: files, network, system calls "+
		"(SECURITY.md); auto means by what the kernel offers, on refuses to start without it")
	f.IntVar(&c.BufferSize, "buffer-size", 50, "`batches` that are buffered in shared memory (slots of the ring)")
	choose(f, &c.OnRange, "on-range", QuarantineRows,
		"what follows when a stage writes rows that cannot be right (docs/plugin-protocol.md, Ranges): quarantine "+
			"leaves them out, and ends the run if no row of a batch is right; stop ends the run; warn trains with "+
			"them; with --verify-plugins it is stop")
	f.BoolVar(&c.VerifyPlugins, "verify-plugins", false,
		"prove that plugins write only to their outputs, and stop when one does not; slower")
	c.RingMemory = 1 << 30
	f.Var(&c.RingMemory, "ring-memory", "largest `size` of the ring, in MB or with a unit")
	f.BoolVar(&c.Adaptive, "adaptive", false, "prepare as few batches ahead as the measured times need, at most "+
		"--buffer-size, and move workers to the stage that limits the run (docs/guides/slots.md)")
	f.StringVar(&c.FeatureCache, "feature-cache", "",
		"`folder` that keeps what stages compute from clips, for later epochs and other runs (docs/feature-cache.md)")
	c.FeatureCacheSize = 16 << 30
	f.Var(&c.FeatureCacheSize, "feature-cache-size",
		"largest `size` of the folder of --feature-cache, in MB or with a unit; the least recently used leaves first")
	c.Slots = 3
	f.Var(&c.Slots, "slots", "`batches` that are buffered on the model's device (device slots): 2 to 8, or auto")
	f.Float64Var(&c.ModelStartDelay, "model-start-delay", 2,
		"longest time to fill the pipeline before the first step, in `seconds`")
	f.IntVar(&c.MaxQuarantine, "max-quarantine", -1,
		"stop when more `rows` of a list are unusable; -1 means 1% of them, at least 1")
}

func defineMachine(c *Config, f, gpus *pflag.FlagSet) {
	choose(f, &c.Device, "device", AutoDevice, "device of the model")
	choose(f, &c.Precision, "precision", AutoPrecision, "precision of matrix products; auto means tf32 (10 bits of "+
		"mantissa) on a GPU, f32 on the CPU; bf16 needs a GPU and a bundle with a bf16 graph")
	choose(f, &c.CUDAGraphs, "cuda-graphs", AutoSwitch,
		"replay of steps as CUDA graphs; auto means on where a replay gives the same result")
	choose(f, &c.Fuse, "fuse", AutoSwitch, "kernels for the parts of the training graph between matrix products, "+
		"compiled at the start on a GPU; auto means on where NVRTC is installed")
	choose(f, &c.Attention, "attention", AutoAttention, "precision of the matrices of attention; auto means that of "+
		"--precision; bf16 is faster and needs the fused graph")
	f.BoolVar(&c.Deterministic, "deterministic", false, "the same bits in every run: slower kernels on a GPU; on the "+
		"CPU, with any --threads, one thread for graphs that need it")
	f.IntVar(&c.Threads, "threads", 0, "CPU `threads` of the model's graphs (default 0: all cores)")
	f.Float64Var(&c.RankTimeout, "rank-timeout", 60, "longest time without a sign of life of another rank, in "+
		"`seconds` (docs/scale.md)")
	choose(f, &c.RankSums, "rank-sums", AutoSums, "when GPUs sum gradients over the ranks: beside means during "+
		"the backward pass of the fused graph, after means after it; auto means beside where the GPUs reach each "+
		"other's memory")
	f.BoolVar(&c.RequireChecksums, "require-checksums", false, "refuse plugins without checksums")
	f.BoolVar(&c.RequireSignatures, "require-signatures", false,
		"refuse plugins that are not signed by a known key, or have changed since they were installed")
	f.StringVar(&c.PluginsLock, "plugins-lock", "",
		"`file` of a run, plugins.lock: refuse other plugins than those in it (docs/plugins-share.md)")
	f.StringVar(&c.ORTLib, "ort-lib", "", "`file` of the ONNX Runtime library, libonnxruntime.so")
	f.StringVar(&c.CacheDir, "cache-dir", "", "`folder` for cached files (default: the user's cache folder)")

	f = gpus
	f.Var(&c.DataGPU, "data-gpu",
		"`GPU` of the plugins: index, UUID, start of a UUID, auto, or cpu for none; requires --model-gpu")
	f.Var(&c.ModelGPU, "model-gpu",
		"`GPU` of the model; one GPU requires --data-gpu, a list such as 0,1 trains one model on all of them "+
			"(docs/scale.md) (default: the first one, with the plugins on the CPU)")
	f.BoolVar(&c.MemoryIsolation, "enable-memory-isolation", false, "enforce the memory limits of plugins and model")
	c.DataGPUMemory, c.ModelGPUMemory = 8<<30, 16<<30
	f.Var(&c.DataGPUMemory, "data-gpu-memory",
		"memory limit of all plugins together, as a `size` in MB or with a unit; auto means 33 % of the GPU")
	f.Var(&c.ModelGPUMemory, "model-gpu-memory",
		"memory limit of training, as a `size` in MB or with a unit; auto means 67 % of the GPU")
	f.Var(&c.MemoryBaseline, "memory-baseline", "memory of training after the first steps, above which growth is "+
		"counted, as a `size` in MB or with a unit; auto means measured")
}
