package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// settings adds the results of the checks that need no process: the run's plan, and the files that it will write.
func (r *Report) settings(ctx context.Context, draft *plan.Draft, set *config.Set) {
	r.section("settings")
	blame := preflight.Blame{}
	for _, c := range preflight.Settings(draft, set) {
		switch o := c.Outcome(ctx, blame); {
		case o.OK == nil:
			r.add(Note, "", "%s: %s", o.Name, o.Detail)
			r.Unchecked = true
		case o.Passed():
			r.add(OK, "", "%s: %s", o.Name, o.Detail)
		case c.Name == preflight.Plugins && errors.Is(o.Fault, fs.ErrNotExist) && aboutMachine(set):
			r.add(Note, o.Hint, "%s", fault(&o))
			r.Unchecked = true
		default:
			if r.Works {
				r.fault = o.Fault
			}
			r.add(Bad, o.Hint, "%s", fault(&o))
		}
	}
	if len(blame) > 0 {
		return
	}
	for _, line := range preflight.Warnings(draft) {
		r.add(Note, "", "%s", line)
	}
}

// fault describes a failed check. A message that begins with a flag, or with what was checked, needs no title.
func fault(o *preflight.Outcome) string {
	if strings.HasPrefix(o.Detail, "--") || strings.HasPrefix(o.Detail, o.Name) {
		return o.Detail
	}
	return o.Name + ": " + o.Detail
}

// aboutMachine reports whether the command line has only flags of the machine and its GPUs. Then the machine is the
// question, which may be asked in a folder without plugins.
func aboutMachine(set *config.Set) bool {
	for _, g := range set.Groups() {
		if g.Title != config.MachineGroup && g.Title != config.GPUGroup && config.OnCommandLine(set, g) {
			return false
		}
	}
	return true
}
