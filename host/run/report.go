package run

import (
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/ending"
	"github.com/xtts-host/xtts-host/host/run/summary"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// describe returns the report of the run, which took wall and ends with the error outcome.
func (r *run) describe(outcome error, wall time.Duration) (*report.Report, error) {
	o, path := r.duties, r.loop.Path
	m := report.Measured{
		Began: r.began, Wall: wall, Pipeline: path.Pipeline.Figures(), Baselines: o.baselines.Losses(),
		Transfers: report.Transfers(r.session.Device.Timer.Transfers()), Setup: summary.Setup(r.plan),
		Diverged: ending.IsDiverged(outcome),
	}
	m.Best = o.speech.Best(r.loop.Train.Progress.Best)
	out := summary.Report(r.plan, map[string]string{"onnxruntime": ort.Version(), "go": runtime.Version()})
	var err error
	if out.Memory, out.Utilization, err = r.session.Usage(wall, r.machine.Watch.Figures()); err != nil {
		return nil, err
	}
	if change := r.plan.Start.Change; change != nil {
		out.Changes = change.History
	}
	out.Outcome, out.Hint = ending.Outcome(outcome)
	r.log.WarnOf(r.log.Unshown()...)
	out.Graphs, out.Plugins, out.Warnings = r.session.Graphs(), r.machine.Report(), r.warnings.List()
	out.NoDeadlines, out.EarlyStop = r.plan.Config.Debug, report.EarlyStopOf(r.loop.EarlyStop())
	out.Augmentations = path.Augmentations()
	out.FeatureCache, out.Spoken, out.Quarantined = path.FeatureCache(), o.speech.Report(), o.quarantine.Count()
	out.Probed, out.GoodCheckpoint = o.probes.Report(), ending.GoodOf(ending.Before(&o.divergence, o.saver))
	o.collector.Complete(out, m)
	return out, nil
}
