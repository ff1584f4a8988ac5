package place

import (
	"fmt"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
)

// Role is the device of a role: a GPU with a share of its memory. The zero Role is on the CPU.
type Role struct {
	GPU gpu.Device
	// Limit is the memory in bytes that all processes of the role may use together, including contexts; 0: no limit.
	Limit int64
	// Plan is the value of Limit under Request.Isolate, with or without it.
	Plan int64
}

// OnCPU reports whether the role is on the CPU.
func (r Role) OnCPU() bool { return r.GPU.UUID == "" }

// Placement assigns the plugins to Data, and the model with training and evaluation to Model. No process of the run
// uses another GPU.
type Placement struct {
	Data, Model Role
	// Reason explains the choice of GPUs that no flag names.
	Reason string
}

// Shared reports whether both roles are on one GPU.
func (p Placement) Shared() bool { return !p.Model.OnCPU() && p.Data.GPU.UUID == p.Model.GPU.UUID }

// Decoders is the number of batches that are decoded at the same time: what is asked for or, for 0, the default. Beside
// a GPU that is half of the cores: training takes 0.1 ms of one for a step, but needs a batch every few milliseconds.
func (p Placement) Decoders(asked int) int {
	const few, most = 2, 8
	switch {
	case asked > 0:
		return asked
	case p.Model.OnCPU():
		return few
	}
	return max(few, min(most, runtime.GOMAXPROCS(0)/2))
}

// String describes the placement, such as "plugins on the CPU, the model on GPU 0: the first GPU".
func (p Placement) String() string {
	text := fmt.Sprintf("plugins on %s, the model on %s", p.Data, p.Model)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// String names the GPU, with the limit if there is one.
func (r Role) String() string {
	switch {
	case r.OnCPU():
		return "the CPU"
	case r.Limit > 0:
		return fmt.Sprintf("GPU %d (at most %d MB)", r.GPU.Index, r.Limit/gpu.MB)
	}
	return fmt.Sprintf("GPU %d", r.GPU.Index)
}
