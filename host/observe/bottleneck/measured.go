package bottleneck

import (
	"fmt"
	"slices"
)

// Setup has the settings that the advice may suggest to change. A count of 0 is unknown and not mentioned.
type Setup struct {
	// OnCPU says that training and the pipeline share the cores. Threads 0 means all of them.
	OnCPU bool
	// Card is the memory of the GPU that trains, in bytes; 0 on the CPU.
	Card int64
	// BatchSize is compared with the recommendation for the card.
	BatchSize                              int
	Threads, NumWorkers, BufferSize, Slots int
	// Cores is how many the process may use. RingLimit names what holds no more ring slots, if they are fewer than
	// requested.
	Cores     int
	RingLimit string
	// PluginOf gives the plugin that serves a stage instance, WorkersOf the number of a plugin's processes.
	PluginOf  map[string]string
	WorkersOf map[string]int
	// UsesGPU contains the plugins that can use a GPU. DataGPU says that they have a GPU of their own, SharedGPU that
	// they use the GPU that trains; without both they run on the CPU.
	UsesGPU            map[string]bool
	DataGPU, SharedGPU bool
}

// Measured are the times of a run. Those of a step are means in ms.
type Measured struct {
	Steps int64
	// Step is the time of a step. Wait is the part of it in which training waited for a batch, Exposed the part of Wait
	// in which that batch was transferred, and Other what is neither wait nor computing: event.Times.Other.
	Step, Wait, Exposed, Other float64
	// Phases are decode, the stages and transfer, in order.
	Phases []Phase
	// Limit is the phase that batches queue for, or the longest one, and Queued says that they do queue.
	Limit  string
	Queued bool
	// Variation is the standard deviation of a step divided by its mean, BucketVariation the largest within one bucket;
	// -1 if no bucket had two steps.
	Variation, BucketVariation float64
	// Cores is the part of the time of all cores that the processes of the run took; 0 if it is unknown.
	Cores float64
	// Others is the part that other programs took meanwhile; 0 if it is unknown.
	Others float64
	Setup  Setup
}

// Phase is a phase of the pipeline.
type Phase struct {
	Name string
	Ms   float64 // that it works on the batches of a step
	// Parallel is the number of batches that it was seen to work on at a time; 0 if that is not known.
	Parallel int
}

// BusyLimit is the share of the cores that other programs took from which a prediction is uncertain: how long phases
// take depends on them then. MostOthers is that from which nothing is predicted.
const (
	BusyLimit  = 0.1
	MostOthers = 0.5
)

// stall is the share of the time in which training waits.
func (m *Measured) stall() float64 {
	if m.Step <= 0 {
		return 0
	}
	return m.Wait / m.Step
}

// ms returns the work of a phase on a step.
func (m *Measured) ms(phase string) float64 {
	for _, p := range m.Phases {
		if p.Name == phase {
			return p.Ms
		}
	}
	return 0
}

// allCores reports whether n workers have all cores.
func (s *Setup) allCores(n int) bool { return s.Cores > 0 && n >= s.Cores }

// threads is the number of threads that train on the CPU; 0 on a GPU.
func (s *Setup) threads() int {
	switch {
	case !s.OnCPU:
		return 0
	case s.Threads == 0:
		return s.Cores
	}
	return s.Threads
}

// onGPU reports whether a plugin computes on a GPU.
func (s *Setup) onGPU(plugin string) bool { return s.UsesGPU[plugin] && (s.DataGPU || s.SharedGPU) }

// Setting is the new value of a setting, as its flag takes it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Now writes the present value of a setting.
func Now(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (now %d)", n)
}

// names are the stages of a plugin.
func (s *Setup) names(plugin string, phases []Phase) (list []string) {
	for _, p := range phases {
		if of, ok := s.PluginOf[p.Name]; ok && of == plugin {
			list = append(list, p.Name)
		}
	}
	slices.Sort(list)
	return list
}
