package plan

import (
	"context"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/data/datafolder"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/resume"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// openFolders reads the data folders of the pipeline.
func (d *Draft) openFolders(ctx context.Context) (err error) {
	defer d.reading.Close()
	d.Stages.Data, err = datafolder.OpenAll(ctx, d.Stages.Resolved.Instances, filepath.Join(d.cache, "index"),
		d.reading.Progress)
	return err
}

// contents returns the hashes of the data folders by their names.
func (s *Stages) contents() map[string]string {
	all := map[string]string{}
	for i := range s.Data {
		all[s.Data[i].Title] = s.Data[i].Hash
	}
	return all
}

// DataUsed describes the data folders.
func (s *Stages) DataUsed() (all []report.DataFolder) {
	for i := range s.Data {
		f := &s.Data[i]
		all = append(all, report.DataFolder{
			Name: f.Title, Path: f.Path, Files: len(f.Files), Seconds: f.Seconds(), Bytes: f.Bytes(), SHA256: f.Hash,
			LeftOut: len(f.LeftOut),
		})
	}
	return all
}

// withoutPaths returns a pipeline without the paths of data folders: what is in them counts.
func withoutPaths(pipeline []manifest.StageInstance) []manifest.StageInstance {
	return manifest.MapData(pipeline, func(manifest.StageInstance) map[string]string { return nil })
}

// ChangedFolders says what has changed in the data folders of a run since a checkpoint of it had these hashes, by their
// names. It does not know of a folder of which the run folder has no list, or another one than that of the checkpoint.
func (p *Plan) ChangedFolders(run string, saved map[string]string) map[string]resume.Folder {
	lists, err := datafolder.ReadLists(run)
	if err != nil {
		return nil // the hashes are shown
	}
	before := resume.FoldersOf(saved)
	changed := map[string]resume.Folder{}
	for i := range p.Stages.Data {
		f := &p.Stages.Data[i]
		was := lists[f.Title]
		if len(was) > 0 && f.Hash != before[f.Title] && datafolder.Hash(was) == before[f.Title] {
			changed[f.Title] = resume.Folder{Path: f.Path, Files: datafolder.Differences(was, f.Files)}
		}
	}
	return changed
}
