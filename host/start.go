package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// findStart opens what the run begins with, so that nothing is written where it does not fit.
func (j *job) findStart(context.Context) (err error) {
	switch c := j.cfg; {
	case c.Resume != "":
		if err := isRun(c.Resume); err != nil {
			return fmt.Errorf("--resume %s: %w", c.Resume, err)
		}
		if j.resumed, j.damaged, err = checkpoint.NewStore(c.Resume).Latest(); err != nil {
			return fmt.Errorf("--resume %s: %w", c.Resume, err)
		}
		return j.resumed.Match(j.hashes)
	case c.Init != "":
		if j.weights, err = openWeights(c.Init); err != nil {
			return exit.Advise(fmt.Errorf("--init %s: %w", c.Init, err), "name a safetensors file, or the folder of a run, a checkpoint or a bundle")
		}
	}
	return nil
}

// isRun tells a folder that no run has written from that of a run that ended before its first checkpoint.
func isRun(folder string) error {
	const advice = "name the folder that a run has written, which holds checkpoints"
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hint.Errorf(advice, "there is no such folder")
	case err != nil:
		return err
	case !info.IsDir():
		return hint.Errorf(advice, "that is a file, not the folder of a run")
	}
	for _, name := range []string{checkpoint.Folder, config.RunFile} {
		if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil // what else is wrong is said by who reads it
		}
	}
	return hint.Errorf(advice, "not the folder of a run: neither %s nor %s is there", checkpoint.Folder, config.RunFile)
}

func (j *job) closeStart() {
	if j.resumed != nil {
		j.resumed.Close() // only read
	}
	if j.weights != nil {
		j.weights.Close()
	}
}
