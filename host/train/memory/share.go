package memory

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// leastShare is the least share, in bytes, of a process whose plugin declares no need. No process works with less: a
// CUDA context alone needs half a GiB (518 MiB were measured on an H200). The plugin itself must check its other memory
// and refuse.
const leastShare = 512 * gpu.MB

// Shares computes the memory limit of each process of a plugin that sees the data GPU, by plugin; 0 without a limit. A
// process gets the need that its manifest declares, and an equal part of the rest of the role's limit. The actual use
// of a process is not known before it runs. Shares refuses a limit below the sum of the needs, and a limit that leaves
// a process without a declared need too little to start.
func Shares(limit int, plugins *catalog.Resolved, workers func(plugin int) int) ([]int64, error) {
	shares := make([]int64, len(plugins.Plugins))
	if limit == 0 {
		return shares, nil
	}
	var t table
	processes, undeclared := 0, false
	for i, plugin := range plugins.Plugins {
		if !plugins.UsesGPU(i) {
			continue
		}
		n, need := workers(i), plugin.Manifest.GPUMemoryMB*gpu.MB
		row := fmt.Sprintf("%s: %s", plugin.Name(), units.Count(n, "process"))
		if need > 0 {
			t.add(fmt.Sprintf("%s x %d MB", row, need/gpu.MB), n*need)
		} else {
			t.note(row, "not declared")
			undeclared = true
		}
		shares[i] = int64(need)
		processes += n
	}
	rest, what := limit-t.total, "is less than the plugins need by gpu_memory_mb in plugin.json"
	if undeclared {
		t.add(fmt.Sprintf("equal parts of the rest: %s x %d MB", units.Count(processes, "process"), leastShare/gpu.MB),
			processes*leastShare)
		if rest >= 0 {
			what = "leaves plugins without gpu_memory_mb in plugin.json less than a CUDA context takes"
		}
	}
	if limit < t.total {
		return nil, hint.Errorf(fmt.Sprintf(
			"give --data-gpu-memory %d or more, or the plugins fewer processes with --plugin-workers",
			t.total/gpu.MB), "%w", visible.WithLines(
			fmt.Errorf("%w: --data-gpu-memory %dMB %s", ort.ErrOutOfMemory, limit/gpu.MB, what), t.lines()...))
	}
	for i := range shares {
		if plugins.UsesGPU(i) {
			shares[i] += int64(rest / processes)
		}
	}
	return shares, nil
}
