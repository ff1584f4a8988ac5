package host

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// leastShare is the least share, in bytes, of a process whose plugin does not say what it needs. No process works with less: a CUDA context
// alone takes half a GiB (518 MiB were measured on an H200). What it computes with is its own to count, and to refuse.
const leastShare = 512 * gpu.MB

// shareOut settles what each process of a plugin that sees the data GPU may use there. Of the limit of the role it has what its manifest
// says that it needs, and an equal part of what all needs leave: what a process takes beyond, or without such a word, is known to nobody
// before it runs. A limit that does not hold the needs is refused, and one of which a process that says nothing gets too little to start.
func (j *job) shareOut() error {
	j.shares = make([]int64, len(j.pipeline.Plugins))
	limit := int(j.placement.Data.Limit)
	if limit == 0 {
		return nil
	}
	var table memoryTable
	processes, undeclared := 0, false
	for i, plugin := range j.pipeline.Plugins {
		if !j.pipeline.UsesGPU(i) {
			continue
		}
		n, need := j.workers(i), plugin.Manifest.GPUMemoryMB*gpu.MB
		row := fmt.Sprintf("%s: %s", plugin.Name(), report.Count(n, "process"))
		if need > 0 {
			table.add(fmt.Sprintf("%s x %d MB", row, need/gpu.MB), n*need)
		} else {
			table.note(row, "not declared")
			undeclared = true
		}
		j.shares[i] = int64(need)
		processes += n
	}
	rest, what := limit-table.total, "is less than the plugins need by gpu_memory_mb in plugin.json"
	if undeclared {
		table.add(fmt.Sprintf("equal parts of the rest: %s x %d MB", report.Count(processes, "process"), leastShare/gpu.MB), processes*leastShare)
		if rest >= 0 {
			what = "leaves plugins without gpu_memory_mb in plugin.json less than a CUDA context takes"
		}
	}
	if limit < table.total {
		return hint.Errorf(fmt.Sprintf("give --data-gpu-memory %d or more, or the plugins fewer processes with --plugin-workers", table.total/gpu.MB),
			"%w: --data-gpu-memory %dMB %s:%s", ort.ErrOutOfMemory, limit/gpu.MB, what, &table)
	}
	for i := range j.shares {
		if j.pipeline.UsesGPU(i) {
			j.shares[i] += int64(rest / processes)
		}
	}
	return nil
}

// workers is how many processes a plugin has.
func (j *job) workers(plugin int) int {
	return max(1, j.cfg.PluginWorkers[j.pipeline.Plugins[plugin].Name()])
}
