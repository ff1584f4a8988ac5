package supervise

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
)

func TestEnvironment(t *testing.T) {
	host := []string{
		"PATH=/bin", "HOME=/home/me", "TMPDIR=/tmp", "LANG=C", "LC_ALL=C", "TZ=UTC", "LD_LIBRARY_PATH=/lib",
		"GOMAXPROCS=8", "OMP_NUM_THREADS=8", "NVIDIA_VISIBLE_DEVICES=all", "XTTS_PLUGIN_CACHE=/c",
		"CUDA_VISIBLE_DEVICES=0", "CUDA_DEVICE_ORDER=FASTEST_FIRST", "ORT_DISABLE_TELEMETRY=0",
		"XTTS_HOST_ORT_LIB=/other.so", "XTTS_HOST_SEED=1", "AWS_SECRET_ACCESS_KEY=x", "NVIDIA_API_KEY=x",
		"XTTS_HOST_TEST_MODE=1", "LD_PRELOAD=/x.so", "PATHOLOGY=1", "EMPTY", "=odd",
	}
	passed := host[:11:11]
	pinned := func(device string) []string {
		return []string{"CUDA_VISIBLE_DEVICES=" + device, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "ORT_DISABLE_TELEMETRY=1"}
	}
	tests := []struct {
		name   string
		device string
		ort    string
		want   []string
	}{
		{"CPU", "", "", append(passed, pinned("")...)},
		{"GPU", "GPU-1", "/ort.so", append(append(passed, "XTTS_HOST_ORT_LIB=/ort.so"), pinned("GPU-1")...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := environment(host, tt.device, tt.ort); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestHomeOfConfined: a confined process has its own home folder, and Python finds what pip has put into that of the
// user.
func TestHomeOfConfined(t *testing.T) {
	d := &tempDir{folder: files.In("/tmp/own")}
	got := d.inTemp([]string{"PATH=/bin", "HOME=/home/me", "TMPDIR=/tmp", "LANG=C"})
	want := []string{"PATH=/bin", "PYTHONUSERBASE=/home/me/.local", "LANG=C", "HOME=/tmp/own", "TMPDIR=/tmp/own"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := d.inTemp([]string{"HOME="}); !slices.Equal(got, want[3:]) {
		t.Errorf("without a home folder: %q", got)
	}
}
