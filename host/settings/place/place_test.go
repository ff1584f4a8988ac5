package place

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// cards opens a machine of n cards of 24 GB.
func cards(n int) func() (gpu.Inventory, error) {
	return func() (gpu.Inventory, error) {
		return &gputest.Inventory{Version: gpu.Driver{Version: "580"}, Cards: gputest.Cards(n, 24576*gpu.MB)}, nil
	}
}

// TestDriverThatDoesNotStart: a run that asks for a GPU is refused, and every other one is on the CPU and says why.
func TestDriverThatDoesNotStart(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
	const fault = "the NVIDIA driver does not start: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"
	broken := func() (gpu.Inventory, error) {
		return &gputest.Inventory{Version: gpu.Driver{Version: "580", Fault: fault}, Cards: gputest.Cards(4,
				24576*gpu.MB)},
			nil
	}
	for _, tt := range []struct {
		args string
		want string // refusal; empty: the CPU
	}{
		{"", ""},
		{"--device cpu", ""},
		{"--device cuda", "--device cuda: " + fault},
		{"--enable-memory-isolation", "--enable-memory-isolation: " + fault},
		{"--data-gpu 2 --model-gpu 3", fault},
		{"--data-gpu cpu --model-gpu GPU-b", fault},
		{"--data-gpu auto --model-gpu auto", fault},
		{"--data-gpu 1", "--data-gpu 1: --model-gpu is missing"},
	} {
		p, err := Find(&configtest.Parse(t, strings.Fields(tt.args)...).Config, broken)
		switch {
		case tt.want != "" && (err == nil || err.Error() != tt.want || hint.Of(err) == ""):
			t.Errorf("%s: %+v, %v, hint %q", tt.args, p, err, hint.Of(err))
		case tt.want == "" && (err != nil || !p.Model.OnCPU() || !p.Data.OnCPU() || tt.args == "" && p.Reason != fault):
			t.Errorf("%s: %+v, %v", tt.args, p, err)
		}
	}
}

// TestPlaceOnCPUAsksNoDriver checks that --device cpu works with a broken driver.
func TestPlaceOnCPUAsksNoDriver(t *testing.T) {
	broken := func() (gpu.Inventory, error) { return nil, errors.New("broken") }
	if _, err := Find(&configtest.Parse(t, "--device", "cpu").Config, broken); err != nil {
		t.Error(err)
	}
	if _, err := Find(&configtest.Parse(t).Config, broken); err == nil || err.Error() != "broken" {
		t.Errorf("error %v", err)
	}
}

func TestLines(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // restored after the test
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	for _, tt := range []struct {
		args  string
		cards int
		want  []string
	}{
		{"", 0, []string{
			"cpu -> data:  decoding by 2 workers, plugins",
			"cpu -> model: training and evaluation with 3 threads",
			"no GPU found",
		}},
		{"", 1, []string{
			"cpu -> data:  decoding by 2 workers, plugins",
			"GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) -> model: training and evaluation; no limit " +
				"(24576MB on the card, 16384MB with --enable-memory-isolation)",
			"the first GPU; --data-gpu and --model-gpu name others",
		}},
		{"--data-gpu 1 --model-gpu 0 --enable-memory-isolation --model-gpu-memory auto", 2, []string{
			"cpu -> data:  decoding by 2 workers",
			"GPU 1 (Fake GPU, GPU-b0000001-0000-0000-0000-000000000000) -> data:  plugins, to which it is device 0; " +
				"held to 8192 of 24576MB",
			"GPU 0 (Fake GPU, GPU-a0000000-0000-0000-0000-000000000000) -> model: training and evaluation; held to " +
				"16465 of 24576MB",
		}},
	} {
		c := &configtest.Parse(t, append(strings.Fields(tt.args), "--threads", "3")...).Config
		p, err := Find(c, cards(tt.cards))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Lines(2, c.Threads); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.args, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
