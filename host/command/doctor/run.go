package doctor

import (
	"context"
	"io"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/command/probe"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// Run runs the command: it reports whether training with these settings can work on this machine, and what is missing.
// It fails if training cannot work. asJSON writes a Report as JSON instead of text. version is the version of the
// program.
func Run(ctx context.Context, out io.Writer, set *config.Set, version string, asJSON bool) error {
	command, err := probe.Self()
	if err != nil {
		return err
	}
	r := Check(ctx, command, set, version)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if asJSON {
		err = report.JSON(out, r)
	} else {
		err = r.Write(out)
	}
	if err != nil {
		return err
	}
	if n := r.Bad(); n > 0 {
		return exit.Refused(preflight.Failed(n, r.fault))
	}
	return nil
}

// Check examines the machine, and checks the settings against it.
func Check(ctx context.Context, command probe.Command, set *config.Set, version string) *Report {
	draft := plan.NewDraft(set, nil)
	defer draft.Close()
	c := &set.Config
	r := Examine(ctx, Config{
		Command: command,
		Place: func(m gpu.Machine) (p place.Placement, err error) {
			draft.Placement, err = place.Decide(place.RequestOf(c), m)
			return draft.Placement, err
		},
		OnCPU: c.Device == place.CPU, Library: c.ORTLib, Version: version,
		Sandbox: sandbox.Mode(c.Sandbox),
	})
	r.settings(ctx, draft, set)
	return r
}
