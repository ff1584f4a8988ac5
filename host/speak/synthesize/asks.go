package synthesize

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Asks says whether speaking with the checkpoints of a run needs a recording of the voice. The error is for a reader of
// the run's page, and says why they do not speak. Of the bundle, only the manifest is read.
func Asks(run string) (voice bool, err error) {
	settings, problem := record.ReadSettings(files.In(run, rundir.SettingsFile))
	if problem != "" {
		return false, errors.New(problem + ": so the bundle of the run is not known")
	}
	graph := ""
	for _, s := range settings {
		if s.Name == "graph" {
			graph = s.Value
		}
	}
	bundle, err := ortgraphs.Manifest(graph)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return false, fmt.Errorf("the bundle of the run is not at %s: %w", graph, pathError.Err)
	}
	if err != nil {
		return false, fmt.Errorf("the bundle of the run cannot be read: %w", err)
	}
	if bundle.Synthesis == nil {
		return false, fmt.Errorf("the bundle of the run, %s, has no graphs that speak", bundle.Name)
	}
	return bundle.Speaks(manifest.GraphConditioning), nil
}
