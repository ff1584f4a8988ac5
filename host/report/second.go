package report

import (
	"fmt"
	"strings"
)

// SecondGPU is what a run on one GPU would gain by another one for its plugins.
type SecondGPU struct {
	// Times is the speed with it, as a multiple of the run's own: 1 for nothing. It is an upper bound, since it takes the stages
	// that move to be fast enough there.
	Times  float64 `json:"times"`
	Reason string  `json:"reason"`
}

// second predicts that from a run's phases: a pipeline is as fast as the slowest of the parts that work at the same time. Nil where the plugins
// have a GPU of their own, on the CPU, and after fewer than two steps.
func second(r *Report, setup Setup) *SecondGPU {
	if setup.OnCPU || setup.DataGPU || r.StepMs.Steps < 2 || r.StepMs.Mean <= 0 {
		return nil
	}
	batches := float64(max(1, r.Accumulation.MicroBatches)) // of a step
	step, plugins := r.StepMs.Mean, map[string]float64{}    // by plugin, the ms of a batch in its stages
	var wait, host, shared float64                          // of a step, in ms
	for _, p := range r.PhasesMs {
		ms := batches * p.Ms
		switch plugin, ok := setup.PluginOf[p.Name]; {
		case ok:
			plugins[plugin] += ms
			if setup.SharedGPU && setup.UsesGPU[plugin] {
				shared += ms
			}
		case p.Name == "decode": // stays on the CPU, as transfer does between two pieces of memory
			host = max(host, ms/float64(max(1, setup.NumWorkers)))
		case p.Name == "transfer":
			host = max(host, ms)
		case p.Name == "wait":
			wait = p.Ms
		}
	}
	prepare := host // the time between two steps' batches
	for plugin, ms := range plugins {
		ms /= float64(max(1, setup.WorkersOf[plugin]))
		prepare = max(prepare, ms)
		if setup.SharedGPU || !setup.UsesGPU[plugin] {
			host = max(host, ms) // as fast on the other GPU as on this one, or left on the CPU
		}
	}
	// What the stages took of the GPU, training gets. Their time is not all of the GPU's, so it gets less than that.
	with := max(step-wait-shared, host)
	s := &SecondGPU{Times: max(1, step/with)}
	why := []string{fmt.Sprintf("the pipeline waits %s of the time for data", percent(r.InputStallRatio))}
	switch {
	case shared > 0:
		why = append(why, fmt.Sprintf("the stages that share the GPU take %s for a step of %s", milliseconds(shared), milliseconds(step)))
	case len(plugins) > 0:
		why = append(why, fmt.Sprintf("plugins on the CPU have what a step needs every %s, and a step takes %s", milliseconds(prepare), milliseconds(step)))
	}
	if s.Times > 1 && with == host {
		why = append(why, fmt.Sprintf("then the steps before training would limit it, with %s", milliseconds(host)))
	}
	s.Reason = strings.Join(why, "; ")
	return s
}
