package plan

import (
	"context"
	"io"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/datafolder"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// WriteSettings keeps in the run's folder what it is trained with, and what changed of that since the run began. Rank 0
// has that of the run.
func (p *Plan) WriteSettings(set *config.Set, dir string) error {
	if !p.World.Leads() {
		return nil
	}
	text := set.RunYAML(p.Changes...)
	if change := p.Start.Change; change != nil {
		if err := change.Write(dir); err != nil {
			return err
		}
		text = change.Comment() + text
	}
	if err := datafolder.WriteLists(dir, p.Stages.Data); err != nil {
		return err
	}
	if err := p.writeLock(dir); err != nil {
		return err
	}
	return disk.Replace(filepath.Join(dir, rundir.SettingsFile), []byte(text))
}

// PrintSettings prints the settings with the bundle's defaults.
func PrintSettings(ctx context.Context, set *config.Set, out io.Writer) error {
	if err := NewDraft(set, nil).OpenBundle(ctx); err != nil {
		return err
	}
	_, err := io.WriteString(out, set.YAML())
	return err
}
