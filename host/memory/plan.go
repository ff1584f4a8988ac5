package memory

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Libraries is the GPU memory of the CUDA context, cuBLAS, cuDNN and their kernels, in addition to allocations: 885 MiB
// were measured on an H200 with ONNX Runtime 1.29.
const Libraries = 920 << 20

// Plan divides the memory of the model GPU.
type Plan struct {
	Limit  int // 0: only the card's memory
	Arenas int // weights, gradients, optimizer state, accumulated gradients
	Copies int // bf16 copies of weights
	Slots  int // of the device
}

// Room is the memory that is left for the graphs; 0 without a limit.
func (p Plan) Room() (int, error) {
	if p.Limit == 0 {
		return 0, nil
	}
	room := p.Limit - p.total(0)
	if room <= 0 {
		return 0, p.refuse("leaves no memory for the graphs", 0)
	}
	return room, nil
}

// Check refuses graphs whose memory, measured in trial runs, exceeds the rest.
func (p Plan) Check(graphs int) error {
	if p.Limit > 0 && p.total(graphs) > p.Limit {
		return p.refuse("is not enough", graphs)
	}
	return nil
}

// refuse returns an error with the memory that the limit would have to include.
func (p Plan) refuse(what string, graphs int) error {
	var t table
	t.add("weights, gradients, optimizer state", p.Arenas)
	if p.Copies > 0 {
		t.add("bf16 copies of the weights", p.Copies)
	}
	t.add("device slots", p.Slots)
	t.add("CUDA and its libraries", Libraries)
	if graphs > 0 {
		t.add("graphs, measured in trial runs of all buckets", graphs)
	}
	return hint.Errorf(fmt.Sprintf("give --model-gpu-memory %d or more, or a smaller --batch-size", p.Need(graphs)),
		"%w: --model-gpu-memory %dMB %s:%s", ort.ErrOutOfMemory, p.Limit/gpu.MB, what, &t)
}

// total is the sum of the fixed memory and the graphs' memory.
func (p Plan) total(graphs int) int { return p.Arenas + p.Copies + p.Slots + Libraries + graphs }

// Need is a limit in MB that leaves spare memory for graphs of that size.
func (p Plan) Need(graphs int) int { return p.total(graphs) * 21 / 20 / gpu.MB }
