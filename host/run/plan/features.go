package plan

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// NewFeatures makes a plan for a command that computes what a run of these settings keeps in its feature cache, and
// trains nothing: for all clips of the training list, and with only the stages of the pipeline that are named, and what
// they need. Without names, these are all whose rows a run keeps in training. kept lists them in the order of the
// pipeline.
func NewFeatures(
	ctx context.Context, set *config.Set, inventory func() (gpu.Inventory, error), reading Reading, names []string,
) (_ *Plan, kept []string, err error) {
	d := NewDraft(set, reading)
	defer d.reading.Close()
	if err := d.Place(inventory); err != nil {
		return nil, nil, err
	}
	if err := d.OpenBundle(ctx); err != nil {
		return nil, nil, err
	}
	if err := d.resolve(); err != nil {
		return nil, nil, err
	}
	if kept, err = d.keptStages(names); err != nil {
		return nil, nil, err
	}
	d.Stages.Resolved = d.Stages.Resolved.Only(kept)
	d.useMachine()
	if err := d.fitStages(ctx); err != nil {
		return nil, nil, err
	}
	if _, err := d.openTraining(ctx); err != nil {
		return nil, nil, err
	}
	return &d.Plan, kept, d.Fit(ctx)
}

// keptStages returns the stages whose rows a run keeps in training: those that are named, or all.
func (d *Draft) keptStages(names []string) (kept []string, err error) {
	instances := d.Stages.Resolved.Instances
	var known, reasons []string
	why := batch.Uncached(instances, false)
	for i, in := range instances {
		known = append(known, in.Name)
		asked := slices.Contains(names, in.Name)
		switch {
		case why[i] == "" && (asked || len(names) == 0):
			kept = append(kept, in.Name)
		case asked:
			return nil, hint.Errorf("leave it out (docs/feature-cache.md says which are kept)",
				"--stages %s: a run does not keep what it computes for training, because %s", in.Name, why[i])
		}
		if why[i] != "" {
			reasons = append(reasons, in.Name+": "+why[i])
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, hint.Errorf(cmp.Or(hint.DidYouMean(name, known), "the pipeline has "+strings.Join(known, ", ")),
				"--stages %s: no stage of the pipeline has that name", name)
		}
	}
	if len(kept) == 0 {
		return nil, hint.Errorf("docs/feature-cache.md says which are kept",
			"a run keeps no stage of the pipeline for training: %s", strings.Join(reasons, "; "))
	}
	return kept, nil
}

// The numbers of processes and slots where nobody gives them: nothing else computes at the same time.
const (
	mostProcesses = 4 // of a plugin
	fewestSlots   = 8 // of the ring
)

// useMachine sets the numbers of decoders, processes and slots that the user has not given.
func (d *Draft) useMachine() {
	settled, processors := *d.Config, runtime.GOMAXPROCS(0)
	if settled.NumWorkers == 0 {
		settled.NumWorkers = processors
	}
	if !d.set.Given("buffer-size") {
		settled.BufferSize = min(settled.BufferSize, max(fewestSlots, 2*processors))
	}
	settled.PluginWorkers = map[string]int{}
	maps.Copy(settled.PluginWorkers, d.Config.PluginWorkers)
	for i, name := range d.Stages.names() {
		onGPU := !d.Placement.Data.OnCPU() && d.Stages.Resolved.UsesGPU(i) // several would share its memory
		if settled.PluginWorkers[name] == 0 && !onGPU {
			settled.PluginWorkers[name] = min(mostProcesses, processors)
		}
	}
	settled.Accumulate = 1
	d.Config = &settled
}
