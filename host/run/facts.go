package run

import (
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/ending"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// facts collects the part of the report that is not about steps.
func (o *observer) facts(outcome error) (report.Run, error) {
	r := o.run
	wall := time.Since(r.began)
	memory, utilization, err := r.session.Usage(wall, r.machine.Watch.Figures())
	if err != nil {
		return report.Run{}, err
	}
	f := r.plan.Record().Facts(map[string]string{"onnxruntime": ort.Version(), "go": runtime.Version()})
	f.Outcome, f.Began, f.Wall = ending.Outcome(outcome), r.began, wall
	if change := r.plan.Start.Change; change != nil {
		f.Changes = change.History
	}
	f.Graphs, f.Memory, f.Utilization = r.session.Graphs(), memory, utilization
	f.Pipeline, f.Transfers = r.loop.Path.Pipeline.Stats(), report.Transfers(r.session.Device.Timer.Transfers())
	f.Warnings, f.Quarantined, f.Baselines = r.warnings.List(), o.quarantine.Count(), o.baselines.Losses()
	if best := r.loop.Train.Progress.Best; best != nil {
		f.Best = &report.Best{Step: best.Step, Loss: report.Float(best.Loss)}
	}
	f.Diverged, f.GoodCheckpoint = ending.IsDiverged(outcome), ending.GoodOf(ending.Before(&o.divergence, o.saver))
	f.EarlyStop, f.FeatureCache, f.Spoken = report.EarlyStopOf(r.earlyStop()), r.loop.Path.FeatureCache(), r.samples.Report()
	for i, pool := range r.machine.Pools {
		s, id := pool.Stats(), r.plan.Stages.Resolved.Plugins[i].Name()
		f.Plugins = append(f.Plugins, report.Plugin{
			ID: id, Workers: f.Setup.WorkersOf[id], Restarts: int(s.Restarts), Calls: int64(s.Calls), Failed: int64(s.Failed), Lost: int64(s.Lost),
			PeakMemoryBytes: s.PeakMemory,
			P50Ms:           milliseconds(s.P50), P99Ms: milliseconds(s.P99),
		})
	}
	return f, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
