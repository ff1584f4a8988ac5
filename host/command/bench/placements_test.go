package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

func TestPlacementsOf(t *testing.T) {
	devices := gputest.Cards(2, 24576*gpu.MB)
	first, second := place.Role{GPU: devices[0].Device}, place.Role{GPU: devices[1].Device}
	a, b := first.GPU.UUID, second.GPU.UUID
	for _, c := range []struct {
		at   place.Placement
		name string
		// flags that every variant must have
		want map[string]string
	}{
		{place.Placement{}, OnCPU, nil},
		{
			place.Placement{Model: first}, PluginsOnCPU,
			map[string]string{PluginsOnCPU: "--data-gpu cpu --model-gpu " + a},
		},
		{
			place.Placement{Data: second, Model: second}, OneGPU,
			map[string]string{OneGPU: "--data-gpu " + b + " --model-gpu " + b},
		},
		{place.Placement{Data: second, Model: first}, TwoGPUs, map[string]string{
			TwoGPUs: "--data-gpu " + b + " --model-gpu " + a, OneGPU: "--data-gpu " + a + " --model-gpu " + a,
			PluginsOnCPU: "--data-gpu cpu --model-gpu " + a}},
	} {
		s := placementsOf(c.at)
		if s.name != c.name {
			t.Errorf("%+v is %s, want %s", c.at, s.name, c.name)
		}
		for _, v := range Variants(s.name, nil) {
			got := ""
			if at, ok := s.gpus[v.Placement]; ok {
				got = fmt.Sprintf("--data-gpu %s --model-gpu %s", at.data, at.model)
			}
			if got != c.want[v.Placement] {
				t.Errorf("%s: %s has the flags %q, want %q", s.name, v.Placement, got, c.want[v.Placement])
			}
		}
	}
}

// TestFindPlacements: the model's GPU, or the error.
func TestFindPlacements(t *testing.T) {
	for _, c := range []struct {
		args    string
		visible string
		cards   int
		want    string
	}{
		{"", "0,1,2,3", 4, "GPU 1 (Fake GPU"}, // after the data GPU
		{"", "3", 4, "GPU 3 (Fake GPU"},
		{"", "0", 1, "GPU 0 (Fake GPU"},
		{"--data-gpu 2 --model-gpu 0", "0,1,2,3", 4, "GPU 0 (Fake GPU"},
		{"--data-gpu 0", "0,1", 2, "--data-gpu 0: --model-gpu is missing"},
		{"--enable-memory-isolation --data-gpu-memory 30000", "0,1", 2, "--data-gpu-memory 30000: "}, // not on one GPU
		{"", "7", 2, "CUDA_VISIBLE_DEVICES"},
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", c.visible)
		s, err := findPlacements(configtest.Parse(t, strings.Fields(c.args)...).Config, cards(c.cards))
		got := s.devices["model"] + fmt.Sprint(err)
		if !strings.Contains(got, c.want) || strings.HasPrefix(c.want, "GPU") != (err == nil) {
			t.Errorf("%s, visible %s: %s, want %s", c.args, c.visible, got, c.want)
		}
	}
	s, err := findPlacements(configtest.Parse(t, "--device", "cpu").Config, cards(2))
	if err != nil || s.name != OnCPU || len(s.gpus) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// cards opens a machine with n GPUs of 24 GB.
func cards(n int) func() (gpu.Inventory, error) {
	return func() (gpu.Inventory, error) {
		return &gputest.Inventory{Version: gpu.Driver{Version: "580"}, Cards: gputest.Cards(n, 24576*gpu.MB)}, nil
	}
}
