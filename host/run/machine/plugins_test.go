package machine

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// TestGiveGPU: plugins with a stage that can use the data GPU see it, with their share of its memory.
func TestGiveGPU(t *testing.T) {
	p := &plan.Plan{
		Placement: place.Placement{Data: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}},
		Stages: plan.Stages{
			Resolved: &catalog.Resolved{
				Plugins: make([]catalog.Entry, 2),
				Instances: []catalog.Instance{
					{Plugin: 0, Stage: manifest.Stage{GPU: "none"}},
					{Plugin: 1, Stage: manifest.Stage{GPU: manifest.GPURequired}},
				},
			},
			Shares: []int64{0, 512 * gpu.MB},
		},
	}
	m := &Machine{plan: p}
	for plugin, want := range []string{"", "GPU-1"} {
		r := new(stagepb.ConfigureRequest)
		if m.giveGPU(r, plugin); r.DeviceUuid != want || r.MemoryLimit != uint64(p.Stages.Shares[plugin]) {
			t.Errorf("plugin %d: %q, %d", plugin, r.DeviceUuid, r.MemoryLimit)
		}
	}
	p.Placement = place.Placement{}
	r := new(stagepb.ConfigureRequest)
	if m.giveGPU(r, 1); r.DeviceUuid != "" || r.MemoryLimit != 0 {
		t.Errorf("on the CPU: %q, %d", r.DeviceUuid, r.MemoryLimit)
	}
}
