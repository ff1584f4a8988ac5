package memory

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Libraries is the expected GPU memory of the CUDA context, cuBLAS, cuDNN, their kernels and captured CUDA graphs, in
// addition to allocations: 885 MiB were measured on an H200 with ONNX Runtime 1.29 and few graphs. It depends on the
// card, the kernels and the number of graphs, so it only decides what ONNX Runtime's arenas may use. After the trial
// runs the driver's figure takes its place.
const Libraries = 920 * gpu.MB

// Growth is reserved for what the process allocates after its trial runs, such as kernels that the driver loads at
// their first use.
const Growth = 16 * gpu.MB

// Plan divides the memory of the model GPU, in bytes.
type Plan struct {
	Limit  int // 0: only the card's memory
	Arenas int // weights, gradients, optimizer state, accumulated gradients
	Copies int // bf16 copies of weights
	Slots  int // of the device
	Others int // gradients that the GPUs of other ranks copy here
	// Samples are weights that graphs copy for speaking at evaluations. They are loaded after the trial runs.
	Samples int
}

// Use is the memory that trial runs of all buckets took, in bytes. The zero Use is not measured.
type Use struct {
	Graphs  int // intermediate values of the graphs, in ONNX Runtime's arenas
	Process int // the whole process, as the driver reports it; 0 if the driver does not report it
	// Spoken is what the longest sentence took in ONNX Runtime's arenas; nil before the graphs that speak are open.
	Spoken *int
}

// spoken is the memory of Spoken in bytes.
func (u Use) spoken() int {
	if u.Spoken == nil {
		return 0
	}
	return *u.Spoken
}

// Room is the memory that is left for the graphs before any has run; 0 without a limit.
func (p Plan) Room() (int, error) {
	if p.Limit == 0 {
		return 0, nil
	}
	room := p.Limit - p.Fixed() - Libraries
	if room <= 0 {
		return 0, p.refuse("leaves no memory for the graphs", Use{})
	}
	return room, nil
}

// Check refuses a limit that is less than trial runs took.
func (p Plan) Check(u Use) error {
	if p.Limit > 0 && p.total(u) > p.Limit {
		return p.refuse("is not enough", u)
	}
	return nil
}

// Left is the memory that is left for speaking after trial runs that took u; 0 without a limit.
func (p Plan) Left(u Use) int {
	if p.Limit == 0 {
		return 0
	}
	return max(1, p.Limit-p.total(u))
}

// refuse returns an error with the memory that the limit would have to include.
func (p Plan) refuse(what string, u Use) error {
	var t table
	t.add("weights, gradients, optimizer state", p.Arenas)
	if p.Copies > 0 {
		t.add("bf16 copies of the weights", p.Copies)
	}
	t.add("device slots", p.Slots)
	if p.Others > 0 {
		t.add("gradients of the other ranks", p.Others)
	}
	if p.Samples > 0 {
		t.add("weights that --samples copies", p.Samples)
	}
	if u.Process > 0 {
		t.add("CUDA, its libraries and CUDA graphs, by the driver", p.libraries(u))
	} else {
		t.add("CUDA and its libraries, expected", Libraries)
	}
	if u.Graphs > 0 {
		t.add("graphs, measured in trial runs of all buckets", u.Graphs)
	}
	advice := fmt.Sprintf("give --model-gpu-memory %d or more, or a smaller --batch-size", p.Need(u))
	if u.Spoken != nil {
		t.add("--samples, measured with the longest sentence", u.spoken())
		advice += ", or no --samples"
	}
	return hint.Errorf(advice, "%w",
		visible.WithLines(fmt.Errorf("%w: --model-gpu-memory %dMB %s", ort.ErrOutOfMemory, p.Limit/gpu.MB, what),
			t.lines()...))
}

// Fixed is the memory that does not depend on the graphs.
func (p Plan) Fixed() int { return p.Arenas + p.Copies + p.Slots + p.Others + p.Samples }

// libraries is the memory of the process that no allocation of the plan explains, with the reserve for its growth.
func (p Plan) libraries(u Use) int {
	if u.Process == 0 {
		return Libraries
	}
	explained := p.Fixed() + u.Graphs + u.spoken()
	if u.Spoken == nil { // not loaded yet
		explained -= p.Samples
	}
	return max(0, u.Process-explained) + Growth
}

// total is the sum of all needs.
func (p Plan) total(u Use) int { return p.Fixed() + p.libraries(u) + u.Graphs + u.spoken() }

// Need is a limit in MB that leaves spare memory for graphs that use so much.
func (p Plan) Need(u Use) int { return p.total(u) * 21 / 20 / gpu.MB }

// Ratio is how many times the use of the graphs the limit has room for; 0 if it is unknown.
func (p Plan) Ratio(u Use) float64 {
	if p.Limit == 0 || u.Graphs == 0 {
		return 0
	}
	return float64(p.Limit-p.Fixed()-p.libraries(u)) / float64(u.Graphs)
}
