package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/nvml"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/dataset"
	"github.com/xtts-host/xtts-host/host/debug"
	"github.com/xtts-host/xtts-host/host/device"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/memory"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/precision"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/trace"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/watch"
	"github.com/xtts-host/xtts-host/host/world"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// ranks is the world of a run, which is one process.
var ranks = world.World{Rank: 0, Size: 1}

// job is everything that a run is made of, in the order in which it is made.
type job struct {
	set *config.Set
	cfg *config.Config
	log *slog.Logger

	placement place.Placement

	feeding batch.Feeding

	cache     string
	bundle    *ortgraphs.Bundle
	arena     *ortgraphs.Arena // of the bundle's parameters, as this run trains them
	precision precision.Precision
	frozen    string // freeze.Identity of those that the run freezes
	buckets   []manifest.Bucket
	data      batch.Data
	folders   []catalog.Entry          // of --plugins
	stages    []manifest.StageInstance // the pipeline as it is asked for
	pipeline  *catalog.Resolved        // and as it was understood
	shares    []int64                  // bytes of the data GPU for a process, by plugin of the pipeline; 0 without a limit
	layouts   []ring.Layout
	slots     int // device slots
	asked     int // ring slots before they were lowered to fit --ring-memory
	prefetch  int
	hashes    map[string]string

	// What the run begins with, if not with the bundle's weights: one of the two.
	resumed *checkpoint.Checkpoint
	damaged []checkpoint.Skipped // newer ones than resumed
	weights *weights

	ortLibrary string // file that the plugins load too; empty where the dynamic loader finds it

	debug      *debug.Folder
	trace      *trace.Writer
	ring       *ring.Ring
	pools      []*supervise.Pool // by plugin of the pipeline
	device     device.Device
	memoryPlan memory.Plan            // of the model GPU
	capture    bool                   // CUDA graphs
	fault      error                  // why not although the host was to choose
	watch      *watch.Watch           // nil on the CPU
	grown      atomic.Pointer[string] // why training is to give memory back; nil: it is not
	arenas     int                    // bytes that ONNX Runtime's arenas have held at most
	model      *train.Model
	optimizer  *train.Optimizer
}

// plan does all that needs no process and no memory to speak of, and so finds most of what can be wrong.
func (j *job) plan(ctx context.Context) error {
	for _, step := range []func(context.Context) error{j.place, j.openBundle, j.openData, j.resolve, j.fit, j.findStart} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// place decides what runs where, before anything does.
func (j *job) place(context.Context) (err error) {
	j.placement, err = place.Find(j.cfg, nvml.Open)
	return err
}

func (j *job) openBundle(context.Context) (err error) {
	if err = precision.Check(j.cfg.Precision, j.card()); err != nil {
		return err
	}
	if j.cache, err = config.CacheFolder(j.cfg.CacheDir); err != nil {
		return err
	}
	if j.bundle, err = ortgraphs.Open(j.cfg.Graph, j.cache); err != nil {
		return err
	}
	j.set.TakeBundle(j.bundle.Manifest)
	j.buckets = j.bundle.Manifest.Buckets
	if j.cfg.StaticShapes {
		j.buckets = j.buckets[len(j.buckets)-1:]
	}
	if j.precision, err = precision.Resolve(j.cfg.Precision, j.card(), j.bundle); err != nil {
		return err
	}
	return j.layOutParameters()
}

func (j *job) openData(ctx context.Context) error {
	var tokenizer *dataset.Tokenizer
	if t := j.bundle.Manifest.Tokenizer; t != nil {
		var err error
		if tokenizer, err = dataset.LoadTokenizer(j.bundle.Path(t.File)); err != nil {
			return exit.Advise(err, "docs/bundle.md says which tokenizers can be read; correct the file, or export the bundle again")
		}
	}
	dir := j.cfg.TrainData
	if dir == "" {
		var err error
		if dir, err = dataset.Sample(j.cache); err != nil {
			return err
		}
	}
	open := func(dir string, which dataset.Split, speakers, languages []string) (*dataset.Index, error) {
		ix, err := dataset.Open(ctx, dataset.Config{
			Dir: dir, Split: which, SampleRate: j.bundle.Manifest.Features.SampleRate, Tokenizer: tokenizer,
			Speakers: speakers, Languages: languages, CacheDir: filepath.Join(j.cache, "index"),
		})
		return ix, exit.Advise(err, "README.md says how a data set is laid out")
	}
	ix, err := open(dir, dataset.Train, nil, nil)
	if err != nil {
		return err
	}
	j.data.Train = &batch.Split{Index: ix}
	val := j.cfg.ValData
	if val == "" {
		has, err := dataset.HasEval(dir)
		if err != nil || !has {
			return err
		}
		val = dir
	}
	if ix, err = open(val, dataset.Eval, ix.Speakers, ix.Languages); err != nil {
		return err
	}
	j.data.Val = &batch.Split{Index: ix}
	return nil
}

// resolve finds the plugins, checks the pipeline like a program, and whether its processes have room on the data GPU.
func (j *job) resolve(context.Context) error {
	entries, err := catalog.Scan(j.cfg.Plugins)
	if err != nil {
		return err
	}
	j.folders = entries
	j.stages = j.bundle.Manifest.Pipeline
	if j.cfg.Pipeline != nil {
		j.stages = j.cfg.Pipeline
	}
	if j.stages, err = catalog.Augment(j.stages, j.cfg.Augment, entries); err != nil {
		return err
	}
	if err := manifest.CheckPipeline(j.stages); err != nil {
		return err
	}
	j.pipeline, err = catalog.Resolve(j.stages, entries, catalog.Types{
		Dataset: dataset.Specs(), Inputs: j.bundle.Manifest.Inputs, Buckets: j.buckets,
		Features: j.bundle.Manifest.Features, RequireChecksums: j.cfg.RequireChecksums, DataGPU: !j.placement.Data.OnCPU(),
	})
	if err != nil {
		return err
	}
	for id := range j.cfg.PluginWorkers {
		if !j.uses(id) {
			return fmt.Errorf("--plugin-workers %s: no plugin of that name is in the pipeline", id)
		}
	}
	j.shares, err = memory.Shares(int(j.placement.Data.Limit), j.pipeline, j.workers)
	return err
}

// workers is how many processes a plugin has.
func (j *job) workers(plugin int) int {
	return max(1, j.cfg.PluginWorkers[j.pipeline.Plugins[plugin].Name()])
}

func (j *job) uses(plugin string) bool {
	for _, e := range j.pipeline.Plugins {
		if e.Name() == plugin {
			return true
		}
	}
	return false
}

// fit sizes plan, slots and ring.
func (j *job) fit(context.Context) error {
	c := j.cfg
	plan := dataset.PlanConfig{Seed: c.Seed, BatchSize: ranks.BatchSize(c.BatchSize), Buckets: j.buckets, MaxGrowth: j.pipeline.MaxGrowth}
	p, err := dataset.NewPlan(j.data.Train.Index.Rows, plan)
	if err != nil {
		return err
	}
	j.data.Train = batch.NewSplit(report.Train, j.data.Train.Index, p, c.Seed, c.NumWorkers)
	if j.data.Val != nil {
		plan.BatchSize = c.BatchSize // each rank evaluates on all rows
		if p, err = dataset.NewEvalPlan(j.data.Val.Index.Rows, plan); err != nil {
			return fmt.Errorf("validation: %w", err)
		}
		j.data.Val = batch.NewSplit(report.Validation, j.data.Val.Index, p, c.Seed, c.NumWorkers)
	}
	// The smaller the batch, the shorter the step, and the more batches are kept ready.
	j.prefetch = max(2, min(8, 64/c.BatchSize))
	if err := j.layOut(c.BatchSize); err != nil {
		return err
	}
	slot := j.slotSize()
	j.asked = c.BufferSize
	if most := int(c.RingMemory) / slot; most < c.BufferSize {
		if most < 1 {
			return hint.Errorf(fmt.Sprintf("give --ring-memory %dMiB or more", slot>>20+1), "--ring-memory %s holds no slot of %.1f MiB", &c.RingMemory, float64(slot)/(1<<20))
		}
		c.BufferSize = most
		j.set.Note("buffer-size", "lowered to fit --ring-memory")
	}
	j.hashes = j.hash()
	return nil
}

// layOut sizes the slots for batches of so many rows.
func (j *job) layOut(rows int) (err error) {
	j.slots = int(j.cfg.Slots)
	if j.slots == 0 {
		j.slots = max(3, min(8, 64/rows))
	}
	j.layouts, err = batch.Layouts(j.buckets, rows, j.bundle.Manifest.Inputs, j.pipeline.Intermediates)
	return err
}

func (j *job) slotSize() int {
	size := 0
	for _, l := range j.layouts {
		size = max(size, l.Size)
	}
	return size
}

// hash names everything that changes numbers. Two runs with equal hashes are the same run.
func (j *job) hash() map[string]string {
	b, c := j.bundle.Manifest, j.cfg
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err) // plain data
		}
		return string(data)
	}
	var plugins []string
	for _, e := range j.pipeline.Plugins {
		plugins = append(plugins, strings.TrimSpace(e.Manifest.ID+" "+e.Manifest.Version+" "+e.Sum))
	}
	hashes := map[string]string{
		"graph":         j.bundle.Hash(),
		"features":      b.Features.Hash(),
		"data":          j.data.Train.Index.Hash(),
		"pipeline":      text(j.stages),
		"plugins":       text(plugins),
		"seed":          strconv.FormatInt(c.Seed, 10),
		"batch_size":    strconv.Itoa(c.BatchSize),
		"accumulation":  strconv.Itoa(c.Accumulate),
		"static_shapes": strconv.FormatBool(c.StaticShapes),
		"optimizer":     text([]any{b.Optimizer.Name, c.LR, b.Optimizer.Betas, b.Optimizer.Eps, b.Optimizer.Momentum, c.WeightDecay, c.GradClip}),
		"schedule":      text([]any{c.Schedule, c.WarmupSteps}),
	}
	if j.precision.Graph != manifest.F32 {
		hashes["precision"] = string(j.precision.Graph)
	}
	if j.frozen != "" {
		hashes["frozen"] = j.frozen
	}
	ranks.Identify(hashes)
	return hashes
}

// start makes memory, processes and sessions. Plugins start while the host opens its graphs: they are other
// processes.
func (j *job) start(ctx context.Context) (err error) {
	if j.ring, err = ring.Create(j.cfg.BufferSize, j.slotSize()); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return j.startPlugins(ctx) })
	g.Go(j.openGraphs)
	return g.Wait()
}

// startPlugins starts the processes of all plugins at the same time. ctx bounds the start only.
func (j *job) startPlugins(ctx context.Context) (err error) {
	requests := make([]*stagepb.ConfigureRequest, len(j.pipeline.Plugins))
	if j.ortLibrary, err = ort.Find(j.ortOptions()); err != nil {
		return err
	}
	for i := range requests {
		if requests[i], err = batch.ConfigureRequest(j.bundle, j.pipeline, i, j.layouts); err != nil {
			return err
		}
		j.giveGPU(requests[i], i)
	}
	j.pools = make([]*supervise.Pool, len(j.pipeline.Plugins))
	g, ctx := errgroup.WithContext(ctx)
	for i, entry := range j.pipeline.Plugins {
		g.Go(func() (err error) {
			j.pools[i], err = supervise.NewPool(ctx, j.poolConfig(entry, requests[i]))
			return err
		})
	}
	return g.Wait()
}

// giveGPU lets a plugin see the data GPU if one of its stages can use it.
func (j *job) giveGPU(r *stagepb.ConfigureRequest, plugin int) {
	if data := j.placement.Data; !data.OnCPU() && j.pipeline.UsesGPU(plugin) {
		r.DeviceUuid, r.MemoryLimit = data.GPU.UUID, uint64(j.shares[plugin])
	}
}

// onGPUInFlight is how many batches a process has at a time that computes on a GPU: enough for one to cross while another is computed.
const onGPUInFlight = 4

// poolConfig applies the limits that were given. --plugin-timeout is that of a batch, and bounds what takes less than one.
func (j *job) poolConfig(plugin catalog.Entry, configure *stagepb.ConfigureRequest) supervise.Config {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	start, call := seconds(j.cfg.PluginStartTimeout), seconds(j.cfg.PluginTimeout)
	inFlight := 0
	if configure.DeviceUuid != "" {
		plugin, inFlight = plugin.OnGPU(), onGPUInFlight
	}
	c := supervise.Config{
		InFlight: inFlight,
		Plugin:   plugin, ORTLibrary: j.ortLibrary, Workers: j.cfg.PluginWorkers[plugin.Name()], Ring: j.ring, Configure: configure, Logger: j.log,
		StartTimeout: start, ConfigureTimeout: start, CallTimeout: call,
	}
	if call > 0 {
		c.DrainTimeout, c.HealthTimeout = min(call, 10*time.Second), min(call, 5*time.Second)
	}
	if j.debug != nil {
		c.Reached = func(phase supervise.Phase, p supervise.ProcessID, pid int) {
			j.debug.Reach(debug.Point{Phase: string(phase), Plugin: plugin.Name(), PID: pid, Worker: p.Worker, Generation: p.Generation})
		}
	}
	return c
}

func (j *job) openGraphs() error {
	if err := ort.Init(j.ortOptions()); err != nil {
		return err
	}
	if err := j.openDevice(); err != nil {
		return err
	}
	return j.openModel()
}

// openModel makes the model and its optimizer.
func (j *job) openModel() (err error) {
	b, threads := j.bundle.Manifest, j.threads()
	model := train.ModelConfig{Bundle: j.bundle, Arena: j.arena, Precision: j.precision.Graph, Layouts: j.layouts, Slots: j.slots, Threads: threads, Device: j.device.Device, CUDAGraphs: j.capture}
	if j.model, err = train.NewModel(model); err != nil {
		return exit.Advise(j.device.Full(err), "what the host can check of the graphs is right, and ONNX Runtime does not take them: export the bundle again")
	}
	p := b.Optimizer
	p.LR, p.WeightDecay, p.GradClip = j.cfg.LR, j.cfg.WeightDecay, j.cfg.GradClip
	j.optimizer, err = train.NewOptimizer(j.model, p, j.accumulates(), threads)
	return j.device.Full(err)
}

// closeModel may be called again, and before openModel.
func (j *job) closeModel() error {
	var errs []error
	if j.optimizer != nil {
		errs = append(errs, j.optimizer.Close())
	}
	if j.model != nil {
		errs = append(errs, j.model.Close())
	}
	j.optimizer, j.model = nil, nil
	return errors.Join(errs...)
}

func (j *job) ortOptions() ort.Options {
	return ort.Options{Library: j.cfg.ORTLib, CUDA: j.onGPU() && !cuda.Fake}
}

func (j *job) threads() int {
	if j.cfg.Threads > 0 {
		return j.cfg.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// close takes down what start made. It is safe after a failed start. A plugin that does not end when it is asked to is
// ended, which costs the run nothing any more but a warning.
func (j *job) close(ctx context.Context) error {
	defer j.device.Enter()()
	var drain errgroup.Group // each has the whole time: one that hangs does not take it from the others
	for _, p := range j.pools {
		if p != nil {
			drain.Go(func() error {
				if err := p.Drain(ctx); err != nil {
					j.log.Warn(err.Error())
				}
				return p.Close()
			})
		}
	}
	errs := []error{drain.Wait(), j.watch.Close(), j.closeModel(), j.device.Close()}
	if j.ring != nil {
		errs = append(errs, j.ring.Close())
	}
	return errors.Join(errs...)
}
