package plan

import (
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Complete returns a message if the run to resume has nothing left to do. It returns "" if steps, an evaluation, or the
// report of a run that was killed after its last checkpoint are left.
func (p *Plan) Complete() string {
	if p.Start.Resumed == nil {
		return ""
	}
	at, source := p.Progress(), p.Source()
	source.Start(at.Position())
	over := source.Done() || p.EarlyStop().Over(at.EarlyStop)
	if beyond := at.Step > source.Total(); !beyond && !(over && reported(p.Config.Resume, at.Step)) {
		return ""
	}
	return fmt.Sprintf("nothing to do: %s is at step %d, %s; no file is changed\n", p.Config.Resume, at.Step,
		end(p, source, at.Step))
}

// end describes the setting that ends the run, which is complete after step.
func end(p *Plan, source *batch.Source, step int64) string {
	c, total := p.Config, source.Total()
	switch {
	case step < total:
		return fmt.Sprintf("where --early-stop %d has ended it", c.EarlyStop)
	case total == c.MaxSteps && step > total:
		return fmt.Sprintf("beyond --max-steps %d (a larger one continues the run)", c.MaxSteps)
	case total == c.MaxSteps:
		return fmt.Sprintf("and --max-steps %d ends it (a larger one continues the run)", c.MaxSteps)
	}
	return fmt.Sprintf("and --epochs %d end it at step %d", c.Epochs, total)
}

// reported reports whether the report of a run is that of a completed run with this number of steps.
func reported(dir string, step int64) bool {
	r, err := report.Read(filepath.Join(dir, rundir.ReportFile))
	return err == nil && r.Outcome == report.Done && r.Steps == step
}
