package host

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
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

// onDataGPU is a run on the data GPU: codes has two processes there and denoise one, which need so many MB each by their manifests. A third
// plugin has no use for it, and what it needs counts for nothing.
func onDataGPU(t *testing.T, limit int64, codes, denoise int) *job {
	plugin := func(id string, mb int) catalog.Entry {
		return catalog.Entry{Manifest: &manifest.Plugin{ID: id, GPUMemoryMB: mb}}
	}
	return &job{
		cfg:       settings(t, "--plugin-workers", "codes=2,features=4"),
		placement: place.Placement{Data: place.Role{GPU: gpu.Device{UUID: "GPU-1"}, Limit: limit}},
		pipeline: &catalog.Resolved{
			Plugins: []catalog.Entry{plugin("features", 4096), plugin("codes", codes), plugin("denoise", denoise)},
			Instances: []catalog.Instance{
				{Plugin: 0, Stage: manifest.Stage{GPU: "none"}}, {Plugin: 1, Stage: manifest.Stage{GPU: manifest.GPURequired}},
				{Plugin: 1}, {Plugin: 2, Stage: manifest.Stage{GPU: manifest.GPUOptional}}, {Plugin: 0},
			},
		},
	}
}

// TestGiveGPU shares the data GPU out by what the manifests say.
func TestGiveGPU(t *testing.T) {
	onCPU := onDataGPU(t, 0, 1000, 0)
	onCPU.placement = place.Placement{}
	for _, tt := range []struct {
		name string
		job  *job
		uuid string
		want [3]uint64 // MB of a process, by plugin
	}{
		{"on the CPU", onCPU, "", [3]uint64{}},
		{"without limit", onDataGPU(t, 0, 1000, 0), "GPU-1", [3]uint64{}},
		{"nothing declared", onDataGPU(t, 9<<30, 0, 0), "GPU-1", [3]uint64{0, 3072, 3072}},
		{"one declared", onDataGPU(t, 9<<30, 3000, 0), "GPU-1", [3]uint64{0, 4072, 1072}},
		{"both declared", onDataGPU(t, 9<<30, 1024, 4096), "GPU-1", [3]uint64{0, 2048, 5120}},
		{"nothing left", onDataGPU(t, 9<<30, 4096, 1024), "GPU-1", [3]uint64{0, 4096, 1024}},
		{"a context left", onDataGPU(t, 3536*gpu.MB, 1000, 0), "GPU-1", [3]uint64{0, 1512, 512}},
	} {
		if err := tt.job.shareOut(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for plugin, want := range tt.want {
			r := new(stagepb.ConfigureRequest)
			tt.job.giveGPU(r, plugin)
			uuid := tt.uuid
			if plugin == 0 {
				uuid = ""
			}
			if r.DeviceUuid != uuid || r.MemoryLimit != want*gpu.MB {
				t.Errorf("%s: plugin %d: %q, %d, want %q, %d MB", tt.name, plugin, r.DeviceUuid, r.MemoryLimit, uuid, want)
			}
		}
	}
}
