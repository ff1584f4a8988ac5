// Package plan resolves everything of a run that can be decided before processes start: placement, bundle, data, stages
// and buffer sizes. So most errors are found before the run starts a process or allocates large memory.
package plan

import (
	"cmp"
	"context"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/limits"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/settings/precision"
	"github.com/xtts-host/xtts-host/host/settings/selection"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/speak/samples"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Plan describes a run. It does not change after New has returned it.
type Plan struct {
	Config    *config.Config // with the bundle's defaults
	Placement place.Placement
	World     world.World // the processes that train together

	Bundle    *ortgraphs.Bundle
	Buckets   Buckets
	Precision precision.Precision
	Training

	Data   batch.Data
	Stages Stages
	Slots  Slots
	Ring   Ring
	// Adaptive is nil without --adaptive.
	Adaptive *Adaptive
	// Changes are the settings that have other values in Config than they were given.
	Changes []config.Change
	Samples samples.List      // to speak at evaluations
	Probes  selection.Shown   // to show at evaluations
	Hashes  map[string]string // of everything that changes numbers: two runs with equal hashes are the same run
	Start   Start
}

// Training is how a run trains the bundle's parameters.
type Training struct {
	Players []Player // the bundle's, in their order
	Frozen  string   // selection.FrozenIdentity of the parameters that the run freezes
}

// Player is how a run trains the parameters of a player.
type Player struct {
	Name      string
	Arena     *ortgraphs.Arena   // their layout
	Optimizer manifest.Optimizer // the bundle's with the run's settings; its groups name their parameters
	Schedule  manifest.Schedule  // likewise
}

// New makes a plan from the settings. inventory opens the inventory of the machine's GPUs. reading gets the progress
// of reading the data; it may be nil.
func New(
	ctx context.Context, set *config.Set, inventory func() (gpu.Inventory, error), reading Reading,
) (*Plan, error) {
	d := NewDraft(set, reading)
	place := func(context.Context) error { return d.Place(inventory) }
	for _, step := range []func(context.Context) error{
		place, d.OpenBundle, d.OpenData, d.ReadSamples, d.ResolveStages, d.Fit, d.CheckLearning, d.FindStart,
		d.SelectProbes,
	} {
		if err := step(ctx); err != nil {
			d.Close()
			return nil, err
		}
	}
	return &d.Plan, nil
}

// Draft is a plan in progress. Its methods are called in the order of New.
type Draft struct {
	Plan
	set     *config.Set
	limits  limits.Limits
	cache   string // folder
	columns *dataset.Columns
	reading Reading
	// unspoken is why the samples of a resumed run cannot be spoken. It may follow from other data or another bundle,
	// which FindStart names first.
	unspoken error
}

// Reading gets the progress of reading the data: so many of a number of things. Another name of the things is
// other work. *event.Reader and *report.Waiting implement it.
type Reading interface {
	Progress(what string, done, of int)
	Close()
}

// NewDraft returns an empty plan. reading may be nil.
func NewDraft(set *config.Set, reading Reading) *Draft {
	if reading == nil {
		reading = (*report.Waiting)(nil)
	}
	return &Draft{
		Plan: Plan{Config: &set.Config, World: set.World}, set: set, limits: limits.Read(),
		reading: reading,
	}
}

// Place decides the placement.
func (d *Draft) Place(inventory func() (gpu.Inventory, error)) (err error) {
	if err := d.limits.Check(); err != nil {
		return err
	}
	d.Placement, err = place.Find(d.Config, inventory)
	return err
}

// Close closes the files of the initial state. It is idempotent.
func (p *Plan) Close() error { return p.Start.close() }

// OnGPU reports whether the model is on a GPU.
func (p *Plan) OnGPU() bool { return !p.Placement.Model.OnCPU() }

// card is the model GPU; nil on the CPU.
func (p *Plan) card() *gpu.Device {
	if !p.OnGPU() {
		return nil
	}
	return &p.Placement.Model.GPU
}

// Device names the device of the model.
func (p *Plan) Device() string {
	if !p.OnGPU() {
		return place.CPU
	}
	return p.Placement.Model.GPU.String()
}

// Decoders is the number of batches that are decoded at the same time.
func (p *Plan) Decoders() int { return p.Placement.Decoders(p.Config.NumWorkers) }

// Threads is the number of CPU threads that compute.
func (p *Plan) Threads() int { return cmp.Or(p.Config.Threads, runtime.GOMAXPROCS(0)) }

// ThreadsBeside is that for graphs that run beside those of training. Sums and recurrences may have other bits with
// more than one, which --deterministic on the CPU does not allow.
func (p *Plan) ThreadsBeside() int {
	if p.Config.Deterministic && !p.OnGPU() {
		return 1
	}
	return p.Threads()
}

// ORT returns the options for ONNX Runtime.
func (p *Plan) ORT() ort.Options {
	return ort.Options{Library: p.Config.ORTLib, CUDA: p.OnGPU()}
}

// TrainingRow names a row of the training data.
func (p *Plan) TrainingRow(row int32) string { return p.Data.Train.Index.Rows[row].ID }
