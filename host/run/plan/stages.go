package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
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
func (d *Draft) resolve() error {
	entries, err := catalog.Scan(d.Config.Plugins)
	if err != nil {
		return exit.Advise(fmt.Errorf("--plugins %s: %w", d.Config.Plugins, err), catalog.Advice())
	}
	d.Stages.Folders = entries
	d.Stages.Asked = d.Bundle.Manifest.Pipeline
	if d.Config.Pipeline != nil {
		d.Stages.Asked = d.Config.Pipeline
	}
	if d.Stages.Asked, err = catalog.Augment(d.Stages.Asked, d.Config.Augment, entries); err != nil {
		return err
	}
	if d.Stages.Asked, err = catalog.PlaceData(d.Stages.Asked, d.Config.PluginData, entries); err != nil {
		return err
	}
	d.Stages.Resolved, err = catalog.Resolve(d.Stages.Asked, entries, catalog.Types{
		Dataset: d.columns.Tensors(), Inputs: d.Bundle.Manifest.Inputs, Buckets: d.Buckets.Sizes,
		Features: d.Bundle.Manifest.Features, Files: d.Bundle.Manifest.Files, Inference: d.Bundle.Manifest.Inference,
		RequireChecksums: d.Config.RequireChecksums, DataGPU: !d.Placement.Data.OnCPU(),
	})
	if err != nil {
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
