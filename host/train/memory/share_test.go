package memory

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSharesRefuse refuses limits that do not hold what the plugins need.
func TestSharesRefuse(t *testing.T) {
	for _, tt := range []struct {
		limit          int // MB
		codes, denoise int // MB
		want, advice   string
	}{
		{0, 1 << 20, 1 << 20, "", ""}, // without a limit
		{2300, 1000, 300, "", ""},
		{
			2299, 1000, 300,
			`out of memory: --data-gpu-memory 2299MB is less than the plugins need by gpu_memory_mb in plugin.json:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process x 300 MB                             300 MB
  together                                               2300 MB`,
			"give --data-gpu-memory 2300 or more, or the plugins fewer processes with --plugin-workers",
		},
		{3536, 1000, 0, "", ""},
		{
			3535, 1000, 0,
			`out of memory: --data-gpu-memory 3535MB leaves plugins without gpu_memory_mb in plugin.json less than a CUDA context takes:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process                                not declared
  equal parts of the rest: 3 processes x 512 MB          1536 MB
  together                                               3536 MB`,
			"give --data-gpu-memory 3536 or more, or the plugins fewer processes with --plugin-workers",
		},
		{
			1999, 1000, 0,
			`out of memory: --data-gpu-memory 1999MB is less than the plugins need by gpu_memory_mb in plugin.json:
  codes: 2 processes x 1000 MB                           2000 MB
  denoise: 1 process                                not declared
  equal parts of the rest: 3 processes x 512 MB          1536 MB
  together                                               3536 MB`,
			"give --data-gpu-memory 3536 or more, or the plugins fewer processes with --plugin-workers",
		},
	} {
		_, err := Shares(tt.limit*gpu.MB, onDataGPU(tt.codes, tt.denoise), twoOfCodes)
		if tt.want == "" && err != nil {
			t.Errorf("%d MB for %d and %d: %v", tt.limit, tt.codes, tt.denoise, err)
		}
		if tt.want != "" &&
			(err == nil || err.Error() != tt.want || exit.Hint(err) != tt.advice || exit.Code(exit.Refused(err)) != 3) {
			t.Errorf("error:\n%v\nhint: %s\nwant:\n%s\nhint: %s", err, exit.Hint(err), tt.want, tt.advice)
		}
	}
}

// onDataGPU has two plugins that see the data GPU, codes and denoise, which need so many MB for a process by their
// manifests. A third has no use for it, and what it needs counts for nothing.
func onDataGPU(codes, denoise int) *catalog.Resolved {
	plugin := func(id string, mb int) catalog.Entry {
		return catalog.Entry{Manifest: &manifest.Plugin{ID: id, GPUMemoryMB: mb}}
	}
	return &catalog.Resolved{
		Plugins: []catalog.Entry{plugin("features", 4096), plugin("codes", codes), plugin("denoise", denoise)},
		Instances: []catalog.Instance{
			{Plugin: 0, Stage: manifest.Stage{GPU: "none"}},
			{Plugin: 1, Stage: manifest.Stage{GPU: manifest.GPURequired}}, {Plugin: 1},
			{Plugin: 2, Stage: manifest.Stage{GPU: manifest.GPUOptional}}, {Plugin: 0},
		},
	}
}

// twoOfCodes are the processes of each plugin.
func twoOfCodes(plugin int) int { return []int{4, 2, 1}[plugin] }

// TestShares shares the data GPU out by what the manifests say.
func TestShares(t *testing.T) {
	for _, tt := range []struct {
		name           string
		limit          int
		codes, denoise int
		want           []int64 // MB of a process, by plugin
	}{
		{"without limit", 0, 1000, 0, []int64{0, 0, 0}},
		{"nothing declared", 9 << 30, 0, 0, []int64{0, 3072, 3072}},
		{"one declared", 9 << 30, 3000, 0, []int64{0, 4072, 1072}},
		{"both declared", 9 << 30, 1024, 4096, []int64{0, 2048, 5120}},
		{"nothing left", 9 << 30, 4096, 1024, []int64{0, 4096, 1024}},
		{"a context left", 3536 * gpu.MB, 1000, 0, []int64{0, 1512, 512}},
	} {
		got, err := Shares(tt.limit, onDataGPU(tt.codes, tt.denoise), twoOfCodes)
		for i := range got {
			got[i] /= gpu.MB
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}
