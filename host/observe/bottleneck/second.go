package bottleneck

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// SecondGPU is the gain of a run on one GPU from another GPU for its plugins.
type SecondGPU struct {
	// Times is the speed with another GPU, as a multiple of the present speed: 1 means no gain. It is an upper bound,
	// because it assumes that the moved stages are fast enough there.
	Times  float64 `json:"times"`
	Reason string  `json:"reason"`
}

// Second predicts the gain from a run's phases: a pipeline is as fast as the slowest of the parts that work in
// parallel. It returns nil if the plugins have a GPU of their own, on the CPU, and after fewer than two steps.
func Second(m *Measured) *SecondGPU {
	setup, step := &m.Setup, m.Step
	if setup.OnCPU || setup.DataGPU || m.Steps < 2 || step <= 0 {
		return nil
	}
	plugins := map[string]float64{} // by plugin, the ms of a step in its stages
	var host, shared float64        // of a step, in ms
	for _, p := range m.Phases {
		switch plugin, ok := setup.PluginOf[p.Name]; {
		case ok:
			plugins[plugin] += p.Ms
			if setup.SharedGPU && setup.UsesGPU[plugin] {
				shared += p.Ms
			}
		case p.Name == decode: // stays on the CPU, as transfer does between two pieces of memory
			host = max(host, p.Ms/float64(max(1, setup.NumWorkers)))
		case p.Name == transfer:
			host = max(host, p.Ms)
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
	// Training gains the GPU time of the stages. The time of a stage is not all on the GPU, so the gain is smaller.
	with := max(step-m.Wait-shared, host)
	s := &SecondGPU{Times: max(1, step/with)}
	why := []string{fmt.Sprintf("the pipeline waits %s of the time for data", units.Percent(m.stall()))}
	switch {
	case shared > 0:
		why = append(why, fmt.Sprintf("the stages that share the GPU take %s for a step of %s",
			units.Milliseconds(shared), units.Milliseconds(step)))
	case len(plugins) > 0:
		why = append(why, fmt.Sprintf("plugins on the CPU need %s per step, training needs %s",
			units.Milliseconds(prepare), units.Milliseconds(step)))
	}
	if s.Times > 1 && with == host {
		why = append(why,
			fmt.Sprintf("then the steps before training would limit it, with %s", units.Milliseconds(host)))
	}
	s.Reason = strings.Join(why, "; ")
	return s
}
