package host

import (
	"errors"
	"runtime"
	"time"

	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// facts gathers what the report says beside the steps.
func (o *observer) facts(outcome error) (report.Run, error) {
	r := o.run
	wall := time.Since(r.began)
	memory, utilization, err := r.usage(wall)
	if err != nil {
		return report.Run{}, err
	}
	f := report.Run{
		Bundle: r.bundle.Manifest.Name, Device: r.deviceName(), Outcome: outcomeOf(outcome), Wall: wall,
		Graphs: graphsOf(r.model), Parameters: r.trained(),
		Versions: map[string]string{"onnxruntime": ort.Version(), "go": runtime.Version()},
		Pipeline: r.path.Pipeline.Stats(), Transfers: report.Transfers(r.device.Timer.Transfers()),
		Memory: memory, Utilization: utilization,
		Quarantined: o.quarantine.Count(),
		Excluded:    r.data.Excluded(), UnknownCharacters: r.unknownCharacters(),
		Accumulation: report.Accumulation{Mode: r.bundle.Manifest.Accumulation, MicroBatches: r.cfg.Accumulate},
		Baselines:    o.baselines.Losses(),
		Setup:        r.setup(),
	}
	if best := r.loop.Progress.Best; best != nil {
		f.Best = &report.Best{Step: best.Step, Loss: report.Float(best.Loss)}
	}
	for i, pool := range r.pools {
		s, id := pool.Stats(), r.pipeline.Plugins[i].Name()
		f.Versions["plugin "+id] = r.pipeline.Plugins[i].Manifest.Version
		f.Plugins = append(f.Plugins, report.Plugin{
			ID: id, Workers: f.Setup.WorkersOf[id], Restarts: int(s.Restarts), Calls: int64(s.Calls),
			P50Ms: milliseconds(s.P50), P99Ms: milliseconds(s.P99),
		})
	}
	return f, nil
}

// graphsOf lists what runs.
func graphsOf(m *train.Model) []report.Graph {
	training, evaluation := m.Programs()
	graph := func(use string, p train.Program) report.Graph {
		return report.Graph{Use: use, File: p.File, Precision: p.Precision, Nodes: p.Nodes, SHA256: p.SHA256}
	}
	return []report.Graph{graph("training", training), graph("evaluation", evaluation)}
}

// deviceName is what the model was trained on, for report.json and its reader.
func (j *job) deviceName() string {
	if j.onGPU() {
		return j.placement.Model.GPU.String()
	}
	return place.CPU
}

// setup is what advice about the speed may tell to change.
func (j *job) setup() report.Setup {
	s := report.Setup{
		OnCPU: !j.onGPU(), Card: j.placement.Model.GPU.Memory, BatchSize: j.cfg.BatchSize, Threads: j.threads(), NumWorkers: j.cfg.NumWorkers, BufferSize: j.cfg.BufferSize, Slots: j.slots,
		PluginOf: map[string]string{}, WorkersOf: map[string]int{}, UsesGPU: map[string]bool{},
		DataGPU: !j.placement.Data.OnCPU() && !j.placement.Shared(), SharedGPU: j.placement.Shared(),
	}
	for _, in := range j.pipeline.Instances {
		id := j.pipeline.Plugins[in.Plugin].Name()
		s.PluginOf[in.Name], s.WorkersOf[id] = id, j.workers(in.Plugin)
		s.UsesGPU[id] = j.pipeline.UsesGPU(in.Plugin)
	}
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// outcomeOf words for report.json how training ended.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, train.ErrInterrupted):
		return "interrupted"
	}
	return err.Error()
}
