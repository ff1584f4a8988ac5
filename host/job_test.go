package host

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// settings reads a command line.
func settings(t *testing.T, args ...string) *config.Config {
	t.Helper()
	set := config.New()
	if err := set.Parse(args, nil); err != nil {
		t.Fatal(err)
	}
	return &set.Config
}

// TestGiveGPU: plugins with a stage that can use the data GPU see it, with their share of its memory.
func TestGiveGPU(t *testing.T) {
	j := &job{
		placement: place.Placement{Data: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}},
		pipeline: &catalog.Resolved{
			Plugins:   make([]catalog.Entry, 2),
			Instances: []catalog.Instance{{Plugin: 0, Stage: manifest.Stage{GPU: "none"}}, {Plugin: 1, Stage: manifest.Stage{GPU: manifest.GPURequired}}},
		},
		shares: []int64{0, 512 * gpu.MB},
	}
	for plugin, want := range []string{"", "GPU-1"} {
		r := new(stagepb.ConfigureRequest)
		if j.giveGPU(r, plugin); r.DeviceUuid != want || r.MemoryLimit != uint64(j.shares[plugin]) {
			t.Errorf("plugin %d: %q, %d", plugin, r.DeviceUuid, r.MemoryLimit)
		}
	}
	j.placement = place.Placement{}
	r := new(stagepb.ConfigureRequest)
	if j.giveGPU(r, 1); r.DeviceUuid != "" || r.MemoryLimit != 0 {
		t.Errorf("on the CPU: %q, %d", r.DeviceUuid, r.MemoryLimit)
	}
}

// TestNoSearch: benchmarks, and models that share a GPU with plugins without a limit, are refused without trials.
func TestNoSearch(t *testing.T) {
	one := place.Role{GPU: gpu.Device{UUID: "GPU-1"}}
	two, capped := place.Role{GPU: gpu.Device{UUID: "GPU-2"}}, one
	capped.Limit = 1 << 30
	for _, tt := range []struct {
		data, model place.Role
		feeding     batch.Feeding
		want        bool
	}{
		{one, two, batch.Overlapped, true}, {one, two, batch.Resident, false}, {one, two, batch.Unsaved, false},
		{one, one, batch.Overlapped, false}, {one, capped, batch.Overlapped, true},
	} {
		j := &job{placement: place.Placement{Data: tt.data, Model: tt.model}, feeding: tt.feeding}
		if got := !j.benchmarked() && !j.growsWithPlugins(); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
