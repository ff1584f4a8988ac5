package bottleneck

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// SecondGPU is the gain of a run on one GPU from another GPU for its plugins.
type SecondGPU struct {
	// Times is the speed with another GPU, as a multiple of the present speed: 1 means no gain. It is an upper bound:
	// stages that leave the CPU count as fast enough. Those that leave a shared GPU count as fast as they are there.
	Times  float64 `json:"times"`
	Reason string  `json:"reason"`
}

// Second predicts the gain from the parts of a run: a pipeline is as fast as the slowest of them. It
// returns nil if the plugins have a GPU of their own, on the CPU, and after fewer than two steps.
func Second(m *Measured) *SecondGPU {
	setup, step := &m.Setup, m.Step
	if setup.OnCPU || setup.DataGPU || m.Steps < 2 || step <= 0 {
		return nil
	}
	var shared float64 // the time of a step in stages that share the GPU, in ms
	for _, p := range m.Phases {
		if setup.SharedGPU && setup.UsesGPU[setup.PluginOf[p.Name]] {
			shared += p.Ms
		}
	}
	var host, prepare float64 // the time between two steps' batches, in ms: with another GPU, and now
	for _, p := range m.parts(setup) {
		plugin, served := setup.PluginOf[p.name]
		if !served && p.name != decode && p.name != transfer {
			continue
		}
		prepare = max(prepare, p.ms)
		// Left on the CPU, or as fast on the other GPU as on this one. Decoding and transfers stay.
		if !served || setup.SharedGPU || !setup.UsesGPU[plugin] {
			host = max(host, p.ms)
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
	case len(setup.PluginOf) > 0:
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
