package host

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
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

// cards opens a machine of n cards of 24 GB.
func cards(n int) func() (gpu.Inventory, error) {
	return func() (gpu.Inventory, error) {
		return &gputest.Inventory{Version: gpu.Driver{Version: "580"}, Cards: gputest.Cards(n, 24576*gpu.MB)}, nil
	}
}

// TestPlaceInBuildWithoutCUDA checks that nothing falls back to the CPU.
func TestPlaceInBuildWithoutCUDA(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
	for _, tt := range []struct {
		args  string
		cards int
		want  string // refusal; empty: the CPU
	}{
		{"", 4, "GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) is there to train on, but this build has no CUDA"},
		{"--device cuda", 4, "GPU 0 (Fake GPU, GPU-a"},
		{"--data-gpu 2 --model-gpu 3", 4, "GPU 3 (Fake GPU, GPU-d"},
		{"--data-gpu cpu --model-gpu GPU-b", 4, "GPU 1 (Fake GPU, GPU-b"},
		{"--data-gpu auto --model-gpu auto", 4, "GPU 1 (Fake GPU, GPU-b"},
		{"--data-gpu 1", 4, "--data-gpu 1: --model-gpu is missing"},
		{"--device cpu", 4, ""},
	} {
		p, err := placeRoles(settings(t, strings.Fields(tt.args)...), cards(tt.cards))
		switch {
		case tt.want == "" && (err != nil || !p.Model.OnCPU() || !p.Data.OnCPU()):
			t.Errorf("%s: %+v, %v", tt.args, p, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want) || exit.Hint(err) == ""):
			t.Errorf("%s: %+v, %v, hint %q", tt.args, p, err, exit.Hint(err))
		case strings.Contains(tt.want, "GPU-") && (!errors.Is(err, gpu.ErrNotBuilt) || !strings.Contains(exit.Hint(err), "make build")):
			t.Errorf("%s: %v, hint %q", tt.args, err, exit.Hint(err))
		}
	}
}

// TestPlaceAsksNobody checks that --device cpu works beside a driver that does not.
func TestPlaceAsksNobody(t *testing.T) {
	broken := func() (gpu.Inventory, error) { return nil, errors.New("broken") }
	if _, err := placeRoles(settings(t, "--device", "cpu"), broken); err != nil {
		t.Error(err)
	}
	if _, err := placeRoles(settings(t), broken); err == nil || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
}

func TestDevices(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // restored behind the test
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	for _, tt := range []struct {
		args  string
		cards int
		want  []string
	}{
		{"", 0, []string{
			"cpu -> data:  decoding by 2 workers, plugins",
			"cpu -> model: the model is created here; training and evaluation with 3 threads",
			"no GPU found",
		}},
		{"", 1, []string{
			"cpu -> data:  decoding by 2 workers, plugins",
			"GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) -> model: the model is created here; training and evaluation; no limit in its 24576MB (16384 with --enable-memory-isolation)",
			"the first GPU; --data-gpu and --model-gpu name others",
		}},
		{"--data-gpu 1 --model-gpu 0 --enable-memory-isolation --model-gpu-memory auto", 2, []string{
			"cpu -> data:  decoding by 2 workers",
			"GPU 1 (Fake GPU, GPU-b0000001-0000-0000-0000-000000000000) -> data:  plugins, to which it is device 0; held to 8192 of 24576MB",
			"GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) -> model: the model is created here; training and evaluation; held to 16465 of 24576MB",
		}},
	} {
		c := settings(t, append(strings.Fields(tt.args), "--threads", "3")...)
		p, err := placeRoles(c, cards(tt.cards))
		if err != nil && !errors.Is(err, gpu.ErrNotBuilt) {
			t.Fatal(err)
		}
		if got := (&job{cfg: c, placement: p}).devices(); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.args, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// seated is a run on the data GPU: codes has two processes there and denoise one, which need so many MB each by their manifests. A third
// plugin has no use for it, and what it needs counts for nothing.
func seated(t *testing.T, limit int64, codes, denoise int) *job {
	plugin := func(id string, mb int) catalog.Entry {
		return catalog.Entry{Manifest: &manifest.Plugin{ID: id, GPUMemoryMB: mb}}
	}
	return &job{
		cfg:       settings(t, "--plugin-workers", "codes=2,features=4"),
		placement: gpu.Placement{Data: gpu.Seat{GPU: gpu.Device{UUID: "GPU-1"}, Limit: limit}},
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
	onCPU := seated(t, 0, 1000, 0)
	onCPU.placement = gpu.Placement{}
	for _, tt := range []struct {
		name string
		job  *job
		uuid string
		want [3]uint64 // MB of a process, by plugin
	}{
		{"on the CPU", onCPU, "", [3]uint64{}},
		{"without limit", seated(t, 0, 1000, 0), "GPU-1", [3]uint64{}},
		{"nothing declared", seated(t, 9<<30, 0, 0), "GPU-1", [3]uint64{0, 3072, 3072}},
		{"one declared", seated(t, 9<<30, 3000, 0), "GPU-1", [3]uint64{0, 4072, 1072}},
		{"both declared", seated(t, 9<<30, 1024, 4096), "GPU-1", [3]uint64{0, 2048, 5120}},
		{"nothing left", seated(t, 9<<30, 4096, 1024), "GPU-1", [3]uint64{0, 4096, 1024}},
		{"a context left", seated(t, 3536*gpu.MB, 1000, 0), "GPU-1", [3]uint64{0, 1512, 512}},
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
