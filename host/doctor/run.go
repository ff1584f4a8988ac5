package doctor

import (
	"context"
	"io"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/precision"
	"github.com/xtts-host/xtts-host/host/probe"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Run runs the command: it reports whether training with these settings can work on this machine, and what is missing.
// It fails if training cannot work. asJSON writes a Report as JSON instead of text. version is the version of the
// program.
func Run(ctx context.Context, out io.Writer, set *config.Set, version string, asJSON bool) error {
	command, err := probe.Self()
	if err != nil {
		return err
	}
	c := &set.Config
	r := Examine(ctx, Config{
		Command: command,
		Place:   func(m gpu.Machine) (place.Placement, error) { return place.On(place.RequestOf(c), m) },
		Fits:    func(card *gpu.Device) error { return precision.Check(c.Precision, card) },
		Files:   Files(set),
		OnCPU:   c.Device == place.CPU, CUDA: cuda.Built, Library: c.ORTLib, Version: version,
	})
	if asJSON {
		err = report.JSON(out, r)
	} else {
		err = r.Write(out)
	}
	if err != nil {
		return err
	}
	if n := r.Bad(); n > 0 {
		return exit.Refused(hint.Errorf("see the lines marked ✗", "training with these settings cannot work on this machine: %s", report.Count(n, "problem")))
	}
	return nil
}
