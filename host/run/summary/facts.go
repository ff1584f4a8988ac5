package summary

import (
	"fmt"
	"maps"
	"runtime"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
)

// Setup has the settings that advice about the speed may name.
func Setup(p *plan.Plan) bottleneck.Setup {
	c, at := p.Config, p.Placement
	s := bottleneck.Setup{
		OnCPU: at.Model.OnCPU(), Card: at.Model.GPU.Memory, BatchSize: c.BatchSize, Threads: p.Threads(),
		NumWorkers: p.Decoders(), BufferSize: c.BufferSize, Slots: p.Slots.Device, Cores: runtime.GOMAXPROCS(0),
		PluginOf: map[string]string{}, WorkersOf: map[string]int{}, UsesGPU: map[string]bool{},
		DataGPU: !at.Data.OnCPU() && !at.Shared(), SharedGPU: at.Shared(),
	}
	if c.BufferSize < p.Ring.Asked {
		s.RingLimit = p.Ring.Limit
	}
	for _, in := range p.Stages.Resolved.Instances {
		id := p.Stages.Resolved.Plugins[in.Plugin].Name()
		s.PluginOf[in.Name], s.WorkersOf[id] = id, max(1, c.PluginWorkers[id])
		s.UsesGPU[id] = p.Stages.Resolved.UsesGPU(in.Plugin)
	}
	return s
}

// Report returns a report with what the plan knows, and the versions of all that computes: those of the plugins are
// added to versions.
func Report(p *plan.Plan, versions map[string]string) *report.Report {
	versions = maps.Clone(versions)
	for _, e := range p.Stages.Resolved.Plugins {
		versions["plugin "+e.Name()] = e.Manifest.Version
	}
	m := p.Bundle.Manifest
	var process *report.Process
	if w := p.World; !w.Alone() {
		process = &report.Process{Rank: w.Rank, Of: w.Size}
	}
	return &report.Report{
		Process: process, Bundle: m.Name, Device: p.Device(), Precision: string(p.Precision.Name), Versions: versions,
		Parameters: p.Parameters(), Excluded: p.Data.Excluded(), Data: p.Data.Usage,
		UnknownCharacters: unknownCharacters(p),
		Sandbox:           sandbox.Describe(sandbox.Mode(p.Config.Sandbox)),
		Accumulation:      report.Accumulation{Mode: m.Accumulation, MicroBatches: p.Config.Accumulate},
		Adaptive:          adaptive(p),
	}
}

// adaptive returns what the plan knows of --adaptive; nil without it.
func adaptive(p *plan.Plan) *report.Adaptive {
	if p.Adaptive == nil {
		return nil
	}
	return report.AdaptiveFrom(p.Adaptive.Slots, p.Config.BufferSize, p.Slots.Size(), p.Adaptive.Returns)
}

// Ring describes the slots of the ring: how many there are, of which size, and with --adaptive what they take.
func Ring(p *plan.Plan) string {
	slot, most := p.Slots.Size(), p.Config.BufferSize
	number, all := units.Count(most, "slot"), ""
	if a := p.Adaptive; a != nil {
		if a.Slots < most {
			number = fmt.Sprintf("%d to %s", a.Slots, number)
		}
		all = ", at most " + units.Size(int64(most)*int64(slot))
		if !a.Returns {
			all = ", " + units.Size(int64(most)*int64(slot)) + ", which stay reserved for a GPU"
		}
	}
	return fmt.Sprintf("ring of %s of %.1f MiB%s", number, float64(slot)/(1<<20), all)
}
