package host

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// libraries is what CUDA's context, cuBLAS, cuDNN and their kernels take of a GPU beside everything that is asked for: 885 MiB were
// measured on an H200 with ONNX Runtime 1.29.
const libraries = 920 << 20

// memoryPlan is how the model GPU's memory is shared out.
type memoryPlan struct {
	limit  int // 0: none but the card's
	arenas int // weights, gradients, optimizer state, accumulated gradients
	slots  int
}

// newMemoryPlan knows what is fixed by the bundle, and what is left for what graphs compute.
func (j *job) newMemoryPlan() memoryPlan {
	return memoryPlan{
		limit:  int(j.placement.Model.Limit),
		arenas: j.memory().Total(),
		slots:  j.slots * train.SlotBytes(j.layouts),
	}
}

// room is what is left for the graphs' own memory; 0 without a limit.
func (p memoryPlan) room() (int, error) {
	if p.limit == 0 {
		return 0, nil
	}
	room := p.limit - p.total(0)
	if room <= 0 {
		return 0, p.refuse("leaves nothing for what the graphs compute", 0)
	}
	return room, nil
}

// check refuses graphs whose memory, taken in trial runs, is more than what is left.
func (p memoryPlan) check(graphs int) error {
	if p.limit > 0 && p.total(graphs) > p.limit {
		return p.refuse("is not enough", graphs)
	}
	return nil
}

// refuse says what the limit would have to hold.
func (p memoryPlan) refuse(what string, graphs int) error {
	var table memoryTable
	table.add("weights, gradients, optimizer state", p.arenas)
	table.add("device slots", p.slots)
	table.add("CUDA and its libraries", libraries)
	if graphs > 0 {
		table.add("what the graphs compute, by trial of every bucket", graphs)
	}
	return hint.Errorf(fmt.Sprintf("give --model-gpu-memory %d or more, or a smaller --batch-size", p.need(graphs)),
		"%w: --model-gpu-memory %dMB %s:%s", ort.ErrOutOfMemory, p.limit/gpu.MB, what, &table)
}

// total is what is fixed, with graphs that take so much.
func (p memoryPlan) total(graphs int) int { return p.arenas + p.slots + libraries + graphs }

// need is a limit in MB under which graphs that take so much have room to spare.
func (p memoryPlan) need(graphs int) int { return p.total(graphs) * 21 / 20 / gpu.MB }

// memoryTable lists for a refusal what a limit would have to hold.
type memoryTable struct {
	rows  string // each behind a line feed
	total int    // bytes
}

func (t *memoryTable) add(name string, bytes int) {
	t.note(name, inMB(bytes))
	t.total += bytes
}

// note adds a row with a word instead of a figure.
func (t *memoryTable) note(name, word string) { t.rows += memoryRow(name, word) }

// String returns the rows and their sum.
func (t *memoryTable) String() string { return t.rows + memoryRow("together", inMB(t.total)) }

// memoryRow fills the space between the two.
func memoryRow(name, value string) string {
	return fmt.Sprintf("\n  %s %*s", name, 61-len(name), value)
}

func inMB(bytes int) string { return fmt.Sprintf("%d MB", bytes/gpu.MB) }
