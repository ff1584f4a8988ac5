package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/train/memory"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Stages describe the stages of the pipeline.
type Stages struct {
	Folders  []catalog.Entry          // of --plugins
	Asked    []manifest.StageInstance // the pipeline in the settings
	Resolved *catalog.Resolved        // the resolved pipeline
	// Identities are the checksums of what the plugins of Resolved compute with.
	Identities []string
	Data       []datafolder.Folder // of the resolved pipeline, in its order
	Shares     []int64             // bytes of the data GPU for a process, by plugin; 0 without a limit
}

// ResolveStages finds the plugins, type-checks the pipeline, and checks whether its processes fit on the data GPU.
func (d *Draft) ResolveStages(ctx context.Context) error {
	if err := d.resolve(); err != nil {
		return err
	}
	return d.fitStages(ctx)
}

// resolve finds the plugins and type-checks the pipeline.
func (d *Draft) resolve() (err error) {
	c := d.Config
	if d.Stages.Asked, d.Stages.Folders, err = Pipeline(c, d.Bundle.Manifest); err != nil {
		return err
	}
	types := Types(d.Bundle.Manifest, d.columns)
	types.Buckets, types.RequireChecksums = d.Buckets.Sizes, c.RequireChecksums
	types.DataGPU = !d.Placement.Data.OnCPU()
	if d.Stages.Resolved, err = catalog.Resolve(d.Stages.Asked, d.Stages.Folders, types); err != nil {
		return d.inPipeline(err)
	}
	if d.Config.RequireSignatures {
		if err := catalog.RequireSigned(d.Stages.Resolved.Plugins); err != nil {
			return err
		}
	}
	if file := d.Config.PluginsLock; file != "" {
		if err := catalog.RequireLocked(file, d.Stages.Resolved.Plugins); err != nil {
			return err
		}
	}
	for id := range d.Config.PluginWorkers {
		if !slices.Contains(d.Stages.names(), id) {
			return hint.Errorf("the pipeline has "+strings.Join(d.Stages.names(), ", "),
				"--plugin-workers %s: no plugin of that name is in the pipeline", id)
		}
	}
	return nil
}

// Pipeline returns the stages that settings ask for, and the plugins of their folder.
func Pipeline(
	c *config.Config, b *manifest.Bundle,
) (stages []manifest.StageInstance, plugins []catalog.Entry, err error) {
	if plugins, err = catalog.Scan(c.Plugins); err != nil {
		return nil, nil, exit.Advise(fmt.Errorf("--plugins %s: %w", c.Plugins, err), catalog.Advice())
	}
	stages = b.Pipeline
	if c.Pipeline != nil {
		stages = c.Pipeline
	}
	if stages, err = catalog.Augment(stages, c.Augment, plugins); err != nil {
		return nil, plugins, err
	}
	stages, err = catalog.PlaceData(stages, c.PluginData, plugins)
	return stages, plugins, err
}

// Types are the types of a pipeline between a data set and a bundle, in the bundle's buckets.
func Types(b *manifest.Bundle, columns *dataset.Columns) catalog.Types {
	return catalog.Types{
		Dataset: columns.Tensors(), Inputs: b.Inputs, Buckets: b.Buckets, Features: b.Features, Files: b.Files,
		Inference: b.Inference,
	}
}

// fitStages reads what the plugins compute with, and checks whether their processes fit on the data GPU.
func (d *Draft) fitStages(ctx context.Context) error {
	for i := range d.Stages.Resolved.Plugins {
		identity, err := d.Stages.Resolved.Plugins[i].Identity() // keeps what it has read, for the feature cache
		if err != nil {
			return err
		}
		d.Stages.Identities = append(d.Stages.Identities, identity)
	}
	err := d.openFolders(ctx)
	if err != nil {
		return err
	}
	d.Stages.Shares, err = memory.Shares(int(d.Placement.Data.Limit), d.Stages.Resolved, d.Workers)
	return err
}

// inPipeline adds the file that the pipeline is from to an error about it.
func (d *Draft) inPipeline(err error) error {
	file := d.Config.PipelineFile
	if file == "" || !strings.HasPrefix(err.Error(), "pipeline") {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// names lists the plugins of the pipeline.
func (s *Stages) names() (names []string) {
	for _, e := range s.Resolved.Plugins {
		names = append(names, e.Name())
	}
	return names
}

// Workers returns the number of processes of a plugin.
func (p *Plan) Workers(plugin int) int {
	return max(1, p.Config.PluginWorkers[p.Stages.Resolved.Plugins[plugin].Name()])
}
