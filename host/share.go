package host

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// share is what each process of a plugin that sees the data GPU may use there, in bytes; 0 without a limit. plugin is an index into the
// pipeline's. Of the limit of the role each process has what its manifest says that it needs, and an equal part of what all needs leave:
// what a process takes beyond, or without such a word, is known to nobody before it runs.
func (j *job) share(plugin int) int64 {
	limit := j.placement.Data.Limit
	if limit == 0 {
		return 0
	}
	rest, processes := limit, 0
	for i := range j.pipeline.Plugins {
		if j.pipeline.UsesGPU(i) {
			n := j.workers(i)
			rest -= int64(n) * j.need(i)
			processes += n
		}
	}
	return j.need(plugin) + rest/int64(processes)
}

// need is what the manifest says that a process of a plugin needs of a GPU, in bytes.
func (j *job) need(plugin int) int64 {
	return int64(j.pipeline.Plugins[plugin].Manifest.GPUMemoryMB) * gpu.MB
}

// workers is how many processes a plugin has.
func (j *job) workers(plugin int) int {
	return max(1, j.cfg.PluginWorkers[j.pipeline.Plugins[plugin].Name()])
}

// checkShares refuses a limit of the data GPU that does not hold what the manifests ask for, or leaves nothing to processes that ask for
// nothing: a share of 0 would be no limit to them.
func (j *job) checkShares() error {
	limit := int(j.placement.Data.Limit)
	if limit == 0 {
		return nil
	}
	var table memoryTable
	processes, undeclared := 0, false
	for i := range j.pipeline.Plugins {
		if j.pipeline.UsesGPU(i) {
			n, need := j.workers(i), int(j.need(i))
			table.add(fmt.Sprintf("%s: %s x %d MB", j.pipeline.Plugins[i].Name(), report.Count(n, "process"), need/gpu.MB), n*need)
			processes += n
			undeclared = undeclared || need == 0
		}
	}
	least, what := table.total, "is less than the plugins need by gpu_memory_mb in plugin.json"
	if undeclared {
		least += processes * gpu.MB // the rest is for all: 1 MB for each
	}
	if limit >= least {
		return nil
	}
	if limit >= table.total {
		what = "leaves nothing for plugins without gpu_memory_mb in plugin.json"
	}
	return hint.Errorf(fmt.Sprintf("give --data-gpu-memory %d or more, or the plugins fewer processes with --plugin-workers", least/gpu.MB),
		"%w: --data-gpu-memory %dMB %s:%s", ort.ErrOutOfMemory, limit/gpu.MB, what, &table)
}
