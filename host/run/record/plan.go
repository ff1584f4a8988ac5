package record

import (
	"maps"
	"runtime"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/settings/precision"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Plan describes a run before it begins. It is wide because its fields are the parts of a run that banner and report
// show.
type Plan struct {
	Config     *config.Config
	Manifest   *manifest.Bundle
	Parameters report.Parameters
	Data       batch.Data
	Pipeline   *catalog.Resolved
	Placement  place.Placement
	Precision  precision.Precision
	Players    []manifest.Player // with the run's settings
	// Schedules are those of the players; it is called once the order of batches is planned.
	Schedules func() []schedule.Schedule
	// Threads is the number of threads of the model on the CPU, Decoders that of batches that are decoded at the same
	// time.
	Threads, Decoders int
	// RingAsked is the requested number of ring slots, before it was lowered to fit --ring-memory; SlotBytes is the
	// size of one.
	RingAsked, SlotBytes int
	// RingLimit names what limits the ring.
	RingLimit string
	// DeviceSlots is the number of slots on the device, Prefetch the number of batches to prepare before training
	// starts.
	DeviceSlots, Prefetch int
	// From is where a resumed run continues.
	From train.Progress
}

// Device names the device of the model.
func (p *Plan) Device() string {
	if p.Placement.Model.OnCPU() {
		return place.CPU
	}
	return p.Placement.Model.GPU.String()
}

// Setup has the settings that advice about the speed may name.
func (p *Plan) Setup() report.Setup {
	c, at := p.Config, p.Placement
	s := report.Setup{
		OnCPU: at.Model.OnCPU(), Card: at.Model.GPU.Memory, BatchSize: c.BatchSize, Threads: p.Threads,
		NumWorkers: p.Decoders, BufferSize: c.BufferSize, Slots: p.DeviceSlots, Cores: runtime.GOMAXPROCS(0),
		PluginOf: map[string]string{}, WorkersOf: map[string]int{}, UsesGPU: map[string]bool{},
		DataGPU: !at.Data.OnCPU() && !at.Shared(), SharedGPU: at.Shared(),
	}
	if c.BufferSize < p.RingAsked {
		s.RingLimit = p.RingLimit
	}
	for _, in := range p.Pipeline.Instances {
		id := p.Pipeline.Plugins[in.Plugin].Name()
		s.PluginOf[in.Name], s.WorkersOf[id] = id, max(1, c.PluginWorkers[id])
		s.UsesGPU[id] = p.Pipeline.UsesGPU(in.Plugin)
	}
	return s
}

// Facts are the facts of report.json that the plan knows, with the versions of all that computes except plugins.
func (p *Plan) Facts(versions map[string]string) report.Run {
	versions = maps.Clone(versions)
	for _, e := range p.Pipeline.Plugins {
		versions["plugin "+e.Name()] = e.Manifest.Version
	}
	return report.Run{
		Bundle: p.Manifest.Name, Device: p.Device(), Precision: p.Precision.Name, Versions: versions, Parameters: p.Parameters,
		Excluded: p.Data.Excluded(), Data: p.Data.Usage, UnknownCharacters: p.UnknownCharacters(), Setup: p.Setup(),
		Accumulation: report.Accumulation{Mode: p.Manifest.Accumulation, MicroBatches: p.Config.Accumulate},
	}
}
