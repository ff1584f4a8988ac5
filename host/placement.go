package host

import (
	"context"
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/nvml"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// findDevices settles what runs where, before anything does.
func (j *job) findDevices(context.Context) (err error) {
	j.placement, err = placeRoles(j.cfg, nvml.Open)
	return err
}

// placeRoles decides by what is asked for and by what the machine has. With --device cpu nobody asks the driver.
func placeRoles(c *config.Config, open func() (gpu.Inventory, error)) (gpu.Placement, error) {
	var m gpu.Machine
	if c.Device != gpu.CPU {
		inventory, err := open()
		if err != nil {
			return gpu.Placement{}, err
		}
		defer inventory.Close() // nothing that it could tell now matters
		if m, err = gpu.Look(inventory); err != nil {
			return gpu.Placement{}, err
		}
	}
	return placeRolesOn(c, m)
}

// request is what the flags ask for.
func request(c *config.Config) gpu.Request {
	r := gpu.Request{
		Device: c.Device, Data: string(c.DataGPU), Model: string(c.ModelGPU),
		Isolate: c.MemoryIsolation, DataLimit: int64(c.DataGPUMemory), ModelLimit: int64(c.ModelGPUMemory),
	}
	if list, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		r.Visible = &list
	}
	return r
}

// placeRolesOn decides for a machine that was looked at. Where only the build lacks CUDA it returns the placement beside the error.
func placeRolesOn(c *config.Config, m gpu.Machine) (gpu.Placement, error) {
	return placeOn(request(c), m)
}

func placeOn(r gpu.Request, m gpu.Machine) (gpu.Placement, error) {
	p, err := gpu.Place(r, m)
	if err == nil && !p.Model.OnCPU() && !cuda.Built {
		err = fmt.Errorf("%s is there to train on, but %w", p.Model.GPU, gpu.ErrNotBuilt)
	}
	return p, err
}

// devices says for the banner what runs where, by role.
func (j *job) devices() []string {
	p, decoding := j.placement, "decoding by "+report.Count(j.cfg.NumWorkers, "worker")
	if p.Data.OnCPU() {
		decoding += ", plugins"
	}
	lines := []string{"cpu -> data:  " + decoding}
	if !p.Data.OnCPU() {
		lines = append(lines, seat("data: ", "plugins, to which it is device 0", p.Data))
	}
	const model = "the model is created here; training and evaluation"
	if p.Model.OnCPU() {
		lines = append(lines, fmt.Sprintf("cpu -> model: %s with %s", model, report.Count(j.threads(), "thread")))
	} else {
		lines = append(lines, seat("model:", model, p.Model))
	}
	if p.Reason != "" {
		lines = append(lines, p.Reason)
	}
	return lines
}

// seat tells of a role on a GPU.
func seat(role, what string, s gpu.Seat) string {
	memory := fmt.Sprintf("held to %d of %dMB", s.Limit/gpu.MB, s.GPU.Memory/gpu.MB)
	if s.Limit == 0 {
		memory = fmt.Sprintf("no limit in its %dMB (%d with --enable-memory-isolation)", s.GPU.Memory/gpu.MB, s.Plan/gpu.MB)
	}
	return fmt.Sprintf("%s -> %s %s; %s", s.GPU, role, what, memory)
}

// giveGPU lets a plugin see the data GPU if one of its stages can use it.
func (j *job) giveGPU(r *stagepb.ConfigureRequest, plugin int) {
	if data := j.placement.Data; !data.OnCPU() && j.pipeline.UsesGPU(plugin) {
		r.DeviceUuid, r.MemoryLimit = data.GPU.UUID, uint64(j.shares[plugin])
	}
}
