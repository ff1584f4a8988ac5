package bottleneck

import (
	"maps"
	"math"
	"slices"
)

// The parts of a run besides the phases of its pipeline.
const (
	Train  = "train"
	Buffer = "buffer" // the ring: a batch has one of its slots until it is transferred
	Cores  = "cores"  // of the machine
	slots  = "slots"  // on the device: they absorb times that vary
)

// The pipeline's own phases.
const decode, transfer = "decode", "transfer"

// part is one of the parts of a run that work at the same time.
type part struct {
	name string  // that of the phase; of a plugin, its longest stage
	ms   float64 // of a step, by all workers of the part
}

// parts returns the parts of the run if it had these settings. A process of a plugin may work on several batches at a
// time, as it was seen to. A part never takes longer than the measured step, whatever its workers do at a time.
func (m *Measured) parts(s *Setup) (list []part) {
	scaled := func(ms float64, at, is, becomes int) float64 { // a time at a number of batches, by numbers of workers
		return min(ms/float64(max(1, at)), m.Step) * float64(max(1, is)) / float64(max(1, becomes))
	}
	var whole float64 // the way of a batch through the pipeline
	plugins, longest, parallel := map[string]float64{}, map[string]Phase{}, map[string]int{}
	for _, p := range m.Phases {
		whole += p.Ms
		plugin, served := s.PluginOf[p.Name]
		switch {
		case served:
			plugins[plugin] += p.Ms
			parallel[plugin] = max(parallel[plugin], p.Parallel, m.Setup.WorkersOf[plugin])
			if p.Ms >= longest[plugin].Ms {
				longest[plugin] = p
			}
		case p.Name == decode:
			list = append(list, part{decode, scaled(p.Ms, m.Setup.NumWorkers, m.Setup.NumWorkers, s.NumWorkers)})
		default: // transfer, and a stage whose plugin is not known
			list = append(list, part{p.Name, min(p.Ms, m.Step)})
		}
	}
	for _, plugin := range slices.Sorted(maps.Keys(plugins)) {
		list = append(list, part{
			longest[plugin].Name,
			scaled(plugins[plugin], parallel[plugin], m.Setup.WorkersOf[plugin], s.WorkersOf[plugin]),
		})
	}
	if s.BufferSize > 0 {
		list = append(list, part{Buffer, scaled(whole, m.Setup.BufferSize, m.Setup.BufferSize, s.BufferSize)})
	}
	return append(list, part{Cores, m.Cores * m.Step}, part{Train, m.Step - m.Wait})
}

// Part is a part of the model: how long a step would take if only this part took time.
type Part struct {
	Name string  `json:"name"`
	Ms   float64 `json:"ms"`
	// Share is that of the measured step: 1 limits the speed.
	Share float64 `json:"share"`
}

// Parts returns the parts of the model as they were measured.
func Parts(m *Measured) []Part {
	list := []Part{}
	for _, p := range m.parts(&m.Setup) {
		if m.Step > 0 && p.ms > 0 {
			list = append(list, Part{p.name, p.ms, p.ms / m.Step})
		}
	}
	return list
}

// slowest returns the part that limits the speed.
func slowest(list []part) part {
	return slices.MaxFunc(list, func(a, b part) int {
		switch {
		case a.ms > b.ms:
			return 1
		case a.ms < b.ms:
			return -1
		}
		return 0
	})
}

// gain predicts by how much more steps a second the run would make with these parts. What a step takes beyond its
// slowest part, because times vary, remains.
func (m *Measured) gain(list []part) float64 {
	rest := max(0, m.Step-slowest(m.parts(&m.Setup)).ms)
	return max(0, m.Step/(slowest(list).ms+rest)-1)
}

// floor is the time of a step with as many workers and slots as one likes.
func (m *Measured) floor() float64 {
	s := m.Setup
	s.NumWorkers, s.BufferSize, s.WorkersOf = math.MaxInt32, math.MaxInt32, maps.Clone(s.WorkersOf)
	for _, plugin := range s.PluginOf {
		if s.WorkersOf != nil {
			s.WorkersOf[plugin] = math.MaxInt32
		}
	}
	return slowest(m.parts(&s)).ms
}

// reserve: a part with exactly the speed of the slowest one makes it wait now and then, so it gets more.
const reserve = 1.1

// mostWorkers is the largest number of workers, and of processes of a plugin, that is suggested.
const mostWorkers = 32

// enough returns the number of workers, or of slots, with which a part that takes so long with n of them limits the run
// no longer; at least n+1, at most most.
func (m *Measured) enough(ms float64, n, most int) int {
	want := math.Ceil(reserve * ms * float64(max(1, n)) / max(m.floor(), 1e-9))
	return max(n+1, int(min(want, float64(most))))
}

// without returns the parts but for the named one.
func without(list []part, name string) []part {
	return slices.DeleteFunc(slices.Clone(list), func(p part) bool { return p.name == name })
}
