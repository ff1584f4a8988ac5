package bench

import (
	"os"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// placements describe where a benchmark trains.
type placements struct {
	name    string            // the requested placement
	gpus    map[string]gpus   // of each measured placement; none on the CPU
	devices map[string]string // by role
}

// gpus are the values of --data-gpu and --model-gpu for a placement.
type gpus struct{ data, model config.GPU }

// findPlacements returns the requested placement. By default that is two GPUs, if there are two.
func findPlacements(c config.Config, open func() (gpu.Inventory, error)) (placements, error) {
	if c.Device != place.CPU && c.DataGPU == "" && c.ModelGPU == "" {
		n, err := CountGPUs(open)
		if err != nil {
			return placements{}, err
		}
		if n >= 2 {
			c.DataGPU, c.ModelGPU = place.Auto, place.Auto
		}
	}
	p, err := place.Find(&c, open)
	if err != nil {
		return placements{}, err
	}
	return placementsOf(p), nil
}

// CountGPUs counts the GPUs that may be used.
func CountGPUs(open func() (gpu.Inventory, error)) (int, error) {
	inventory, err := open()
	if err != nil {
		return 0, err
	}
	defer inventory.Close() // an error no longer matters here
	if inventory.Driver().Fault != "" {
		return 0, nil
	}
	devices := inventory.Devices()
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		devices, err = gpu.Visible(list, devices)
	}
	return len(devices), err
}

// placementsOf returns the GPUs of every placement by UUID, so two runs of a benchmark use the same ones.
func placementsOf(p place.Placement) placements {
	if p.Model.OnCPU() {
		return placements{name: OnCPU}
	}
	model := p.Model.GPU.UUID
	with := func(data string) gpus { return gpus{config.GPU(data), config.GPU(model)} }
	s := placements{
		name:    PluginsOnCPU,
		gpus:    map[string]gpus{PluginsOnCPU: with(place.CPU), OneGPU: with(model)},
		devices: map[string]string{"data": "the CPU", "model": p.Model.GPU.String()},
	}
	if p.Data.OnCPU() {
		return s
	}
	s.name, s.devices["data"] = OneGPU, p.Data.GPU.String()
	if !p.Shared() {
		s.name, s.gpus[TwoGPUs] = TwoGPUs, with(p.Data.GPU.UUID)
	}
	return s
}
