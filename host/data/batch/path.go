package batch

import (
	"log/slog"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Config has the parts of a Path.
type Config struct {
	Source     *Source
	InputMode  InputMode
	Data       Data
	BatchSize  int
	Depths     Depths
	Adaptive   *Adaptive // nil: all numbers stay
	Ring       *ring.Ring
	Layouts    []ring.Layout // by bucket
	Inputs     []manifest.TensorSpec
	Scalars    []manifest.Scalar // of the bundle
	Stages     *catalog.Resolved
	Pools      []supervise.Processes // by plugin of Stages
	Fed        bool                  // other ranks have batches in the memory of Ring and at the processes of Pools
	Model      Loader
	GPU        gpu.Context // of the model; nil on the CPU
	Quarantine *Quarantine
	Features   *Features // nil without a feature cache
	Log        *slog.Logger
	Verify     bool // prove that plugins write only to their outputs; the pools have supervise.Config.Pause
	OnRange    config.OnRange
	Contract   manifest.Features // of the bundle: what spectrograms may be
	Hooks      Hooks
}

// Depths are the numbers of batches in flight.
type Depths struct {
	Ring     int // slots for prepared batches
	Device   int // slots of the model's device
	Workers  int // decoders
	Prefetch int // batches to prepare before the first step
}

// Hooks are called at points of the path of a batch. Each may be nil.
type Hooks struct {
	// Decode is called before a batch is decoded, by several goroutines at a time.
	Decode func()
	// Copy is called before the transfer of a batch to the device, and Copied after it, while the batch is still in the
	// ring. An error of Copied ends the run.
	Copy   func()
	Copied func(b *pipeline.Batch, layout *ring.Layout, slot []byte) error
	// Tracer returns the tracer of the pipeline.
	Tracer func(pipeline.Config) pipeline.Tracer
}

// common is shared by decoder, stages and copier.
type common struct {
	seed    int64
	ring    *ring.Ring
	layouts []ring.Layout
	guards  *guards
	proof   *proof // nil without Config.Verify
	seals   *seals // nil with it
	ranges  ranges
	onRange config.OnRange
	data    Data
	origins map[string]origin // by stage instance; nil if stages get no sources
	crops   [][]dataset.Crop  // by slot and row: the references in it
}

// watch makes what notices writes that no guard shows.
func (c *common) watch(verify bool) {
	if verify {
		c.proof = newProof(c.ring, c.layouts)
		return
	}
	c.seals = newSeals(c.ring)
}

// Path is the path of all batches of a run, from the data plan to the trainer.
type Path struct {
	Pipeline *pipeline.Pipeline
	Feed     pipeline.Feed // the trainer takes its batches from it

	mode     adapter
	copier   *copier
	guards   *guards
	features *Features
	memos    []*memo        // by stage instance
	runners  []*stageRunner // by stage instance
}

// New creates a path. Nothing runs until the pipeline runs.
func New(c Config) (*Path, error) {
	shared := &common{
		seed: c.Source.Seed, ring: c.Ring, layouts: c.Layouts, guards: newGuards(c.Ring, c.Layouts), data: c.Data,
		ranges: rangesOf(c.Stages.Instances, c.Contract), onRange: c.OnRange,
		origins: origins(c.Stages.Instances, c.Stages.Dataset), crops: make([][]dataset.Crop, c.Ring.Slots()),
	}
	shared.guards.fed = c.Fed
	shared.watch(c.Verify)
	for i, pool := range c.Pools {
		shared.guards.pools = append(shared.guards.pools, pool)
		shared.guards.names = append(shared.guards.names, c.Stages.Plugins[i].Name())
	}
	p := &Path{
		mode: adapter{mode: c.InputMode, steps: c.Source.Total()}, guards: shared.guards,
		copier: &copier{
			common: shared, model: c.Model, gpu: c.GPU, frames: make([]int, c.Depths.Device),
			lengths: frameLengths(c.Inputs), hooks: c.Hooks,
		},
	}
	cfg := pipeline.Config{
		Decoder: &decoder{
			common: shared, made: madeByHost(c.Layouts, c.Stages.Dataset),
			tensors: make([][]dataset.Tensor, c.Depths.Workers), unread: c.Quarantine.unread, before: c.Hooks.Decode,
		},
		Device: p.copier, Measure: p.copier.measure(c.Scalars),
		Reject: func(b *pipeline.Batch, rows []pipeline.Rejected) error {
			return c.Quarantine.rejected(c.Data.splitOf(b), b, rows)
		},
		RingSlots: c.Depths.Ring, DeviceSlots: c.Depths.Device, Workers: c.Depths.Workers, Prefetch: c.Depths.Prefetch,
	}
	p.features, p.memos = c.Features, c.Features.memos(shared, c.Stages.Instances)
	for i, in := range c.Stages.Instances {
		p.runners = append(p.runners, newStageRunner(shared, c.Pools[in.Plugin], c.Stages.Plugins[in.Plugin].Name(), in,
			p.memos[i], c.BatchSize, c.Log))
		cfg.Stages = append(cfg.Stages, pipeline.Step{
			Name: in.Name, Augment: in.Stage.Kind == manifest.Augment, Stage: p.runners[i],
		})
	}
	if c.Adaptive != nil {
		cfg.Adapt = newTuner(&c, shared.guards).adapt()
	}
	p.mode.configure(&cfg, c.Source)
	if c.Hooks.Tracer != nil {
		cfg.Tracer = c.Hooks.Tracer(cfg)
	}
	var err error
	if p.Pipeline, err = pipeline.New(cfg); err != nil {
		return nil, err
	}
	p.Feed = p.mode.wrap(p.Pipeline)
	return p, nil
}

// Frames counts the valid target frames of the batch in a device slot.
func (p *Path) Frames(d *pipeline.DeviceSlot) int { return p.copier.frames[d.Index] }

// Damaged has all batches in flight rebuilt, because another rank has found the memory damaged.
func (p *Path) Damaged() { p.guards.outdate() }

// FeatureCache returns the figures of the feature cache, nil without one.
func (p *Path) FeatureCache() *report.FeatureCache { return p.features.report(p.memos) }

// Close unblocks a pipeline that waits for the trainer. Call it after the last step.
func (p *Path) Close() { p.mode.close() }
