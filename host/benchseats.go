package host

import (
	"os"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/bench"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/place"
)

// benchSeats says where a benchmark trains.
type benchSeats struct {
	name    string              // of the placement that is asked for, by package bench
	args    map[string][]string // the flags of each placement that is measured; none on the CPU
	devices map[string]string   // by role
}

// findBenchSeats finds the placement that is asked for. Where none is and there are two GPUs, it is on two.
func findBenchSeats(c config.Config, open func() (gpu.Inventory, error)) (benchSeats, error) {
	if c.Device != place.CPU && c.DataGPU == "" && c.ModelGPU == "" {
		n, err := countGPUs(open)
		if err != nil {
			return benchSeats{}, err
		}
		if n >= 2 {
			c.DataGPU, c.ModelGPU = place.Auto, place.Auto
		}
	}
	p, err := place.Find(&c, open)
	if err != nil {
		return benchSeats{}, err
	}
	return seatsOf(p), nil
}

// countGPUs counts those that may be used.
func countGPUs(open func() (gpu.Inventory, error)) (int, error) {
	inventory, err := open()
	if err != nil {
		return 0, err
	}
	defer inventory.Close() // nothing that it could tell now matters
	devices := inventory.Devices()
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		devices, err = gpu.Visible(list, devices)
	}
	return len(devices), err
}

// seatsOf names the GPUs of every placement by their UUIDs: two runs of a benchmark are on the same ones.
func seatsOf(p place.Placement) benchSeats {
	if p.Model.OnCPU() {
		return benchSeats{name: bench.OnCPU}
	}
	model := p.Model.GPU.UUID
	flags := func(data string) []string { return []string{"--data-gpu", data, "--model-gpu", model} }
	s := benchSeats{
		name:    bench.PluginsOnCPU,
		args:    map[string][]string{bench.PluginsOnCPU: flags(place.CPU), bench.OneGPU: flags(model)},
		devices: map[string]string{"data": "the CPU", "model": p.Model.GPU.String()},
	}
	if p.Data.OnCPU() {
		return s
	}
	s.name, s.devices["data"] = bench.OneGPU, p.Data.GPU.String()
	if !p.Shared() {
		s.name, s.args[bench.TwoGPUs] = bench.TwoGPUs, flags(p.Data.GPU.UUID)
	}
	return s
}
