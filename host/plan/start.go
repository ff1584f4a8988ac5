package plan

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

// Start is the initial state of a run other than the bundle's weights: Resumed or Weights.
type Start struct {
	Resumed *checkpoint.Checkpoint
	Damaged []checkpoint.Skipped // newer ones than Resumed
	Weights *Weights
}

// FindStart opens the initial state. So a checkpoint that does not match is refused before anything is written.
func (d *Draft) FindStart(context.Context) (err error) {
	switch c := d.Config; {
	case c.Resume != "":
		if err := d.openResumed(); err != nil {
			return fmt.Errorf("--resume %s: %w", c.Resume, err)
		}
		return d.Start.Resumed.Match(d.Hashes)
	case c.Init != "":
		if d.Start.Weights, err = openWeights(c.Init); err != nil {
			return exit.Advise(fmt.Errorf("--init %s: %w", c.Init, err), "name a safetensors file, or the folder of a run, a checkpoint or a bundle")
		}
	}
	return nil
}

// openResumed opens the checkpoint of --resume, once.
func (d *Draft) openResumed() (err error) {
	if d.Start.Resumed != nil {
		return nil
	}
	if err := isRun(d.Config.Resume); err != nil {
		return err
	}
	d.Start.Resumed, d.Start.Damaged, err = checkpoint.NewStore(d.Config.Resume).Find(d.Config.ResumeAt)
	if errors.Is(err, checkpoint.ErrNone) && len(d.Start.Damaged) == 0 {
		return hint.Errorf("begin it anew with --resume-or-start "+hint.Path(d.Config.Resume), "the run ended before its first checkpoint")
	}
	return err
}

// isRun reports whether a run has written to the folder. Such a run may have ended before its first checkpoint.
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
			return nil // the reader reports other errors
		}
	}
	return hint.Errorf(advice, "not the folder of a run: neither %s nor %s is there", checkpoint.Folder, config.RunFile)
}

func (s *Start) close() error {
	var errs []error
	if s.Resumed != nil {
		errs = append(errs, s.Resumed.Close())
	}
	if s.Weights != nil {
		errs = append(errs, s.Weights.Close())
	}
	return errors.Join(errs...)
}
