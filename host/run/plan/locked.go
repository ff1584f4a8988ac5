package plan

import (
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/train/resume"
)

// writeLock keeps in a run folder which plugins the run uses.
func (p *Plan) writeLock(dir string) error {
	lock, err := catalog.LockOf(p.Stages.Resolved.Plugins)
	if err != nil {
		return err
	}
	text, err := lock.Text()
	if err != nil {
		return err
	}
	return disk.Replace(filepath.Join(dir, rundir.LockFile), text)
}

// ChangedPlugins says what has changed in the files of each plugin that differs from that of a run, by the names of the
// differences. It does not know of a plugin of which the lock of the run has another identity than the checkpoint.
func (p *Plan) ChangedPlugins(run string, found []resume.Difference) map[string][]string {
	text, err := files.In(run, rundir.LockFile).Read(catalog.MaxLock)
	if err != nil {
		return nil // the hashes are shown
	}
	lock, err := catalog.ParseLock(rundir.LockFile, text)
	if err != nil {
		return nil
	}
	changed := map[string][]string{}
	for _, d := range found {
		name, ok := strings.CutPrefix(d.Name, "plugins/")
		was, locked := lock.Plugin(name)
		if !ok || !locked || d.From != resume.PluginValue(was.Version, was.Identity) {
			continue
		}
		for i := range p.Stages.Resolved.Plugins {
			if e := &p.Stages.Resolved.Plugins[i]; e.Name() == name {
				changed[d.Name], _ = was.Differences(e)
			}
		}
	}
	return changed
}
