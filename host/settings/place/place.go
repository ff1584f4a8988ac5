package place

import (
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Find places the roles by the request and the machine. With --device cpu it does not call the driver.
func Find(c *config.Config, open func() (gpu.Inventory, error)) (Placement, error) {
	var m gpu.Machine
	if c.Device != config.CPU {
		inventory, err := open()
		if err != nil {
			if advice := hint.Of(err); advice != "" {
				err = hint.Errorf(advice+"; --device cpu trains on the CPU", "%w", err)
			}
			return Placement{}, err
		}
		defer inventory.Close() // errors at this point do not matter
		if m, err = gpu.Look(inventory); err != nil {
			return Placement{}, err
		}
	}
	return Decide(RequestOf(c), m)
}

// RequestOf returns the request of the flags.
func RequestOf(c *config.Config) Request {
	r := Request{
		Device: c.Device, Data: string(c.DataGPU), Model: string(c.ModelGPU),
		Isolate: c.MemoryIsolation, DataLimit: int64(c.DataGPUMemory), ModelLimit: int64(c.ModelGPUMemory),
		Ranks: c.World,
	}
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		r.Visible = &list
	}
	return r
}

// Lines describes the placement, one line per role. workers is the number of decoders; threads is for a model on the
// CPU.
func (p Placement) Lines(workers, threads int) []string {
	decoding := "decoding by " + units.Count(workers, "worker")
	if p.Data.OnCPU() {
		decoding += ", plugins"
	}
	lines := []string{"cpu -> data:  " + decoding}
	if !p.Data.OnCPU() {
		lines = append(lines, p.Data.line("data: ", "plugins, to which it is device 0"))
	}
	const model = "training and evaluation"
	if p.Model.OnCPU() {
		lines = append(lines, fmt.Sprintf("cpu -> model: %s with %s", model, units.Count(threads, "thread")))
	} else {
		lines = append(lines, p.Model.line("model:", model))
	}
	if p.Reason != "" {
		lines = append(lines, p.Reason)
	}
	return lines
}

// line describes a role on a GPU.
func (r Role) line(role, what string) string {
	memory := fmt.Sprintf("held to %d of %dMB", r.Limit/gpu.MB, r.GPU.Memory/gpu.MB)
	if r.Limit == 0 {
		memory = fmt.Sprintf("no limit (%dMB on the card, %dMB with --enable-memory-isolation)", r.GPU.Memory/gpu.MB,
			r.Plan/gpu.MB)
	}
	return fmt.Sprintf("%s -> %s %s; %s", r.GPU, role, what, memory)
}
