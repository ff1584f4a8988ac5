package place

import (
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/world"
)

// Values of a Request other than GPUs.
const (
	Auto = "auto"
	CPU  = "cpu"
)

// Request is the requested placement. The zero Request trains on the first GPU, or on the CPU of a machine without one.
type Request struct {
	// Device is the one that trains; empty means AutoDevice.
	Device config.Device
	// Data and Model name GPUs in the syntax of gpu.Resolve, or are Auto. Data may be CPU. Both are set, or neither.
	Data, Model string
	// Isolate limits the memory of each role: DataLimit and ModelLimit in bytes, 0 for OptimalLimits.
	Isolate               bool
	DataLimit, ModelLimit int64
	// Visible is CUDA_VISIBLE_DEVICES; nil if it is not set.
	Visible *string
	// Ranks are the processes that train together. Model then may be a list: the GPU of each rank of the machine.
	Ranks world.World
}

// Needs returns the number of GPUs that the request requires: 0 if it would train on the CPU of a machine without one.
func (r Request) Needs() int {
	switch ranks := len(ModelGPUs(r.Model)); {
	case r.Device == config.CPU:
		return 0
	case ranks > 1:
		return ranks
	case r.Data != "" && r.Model != "" && r.Data != CPU && (r.Data != r.Model || r.Data == Auto):
		return 2
	case r.Device == config.CUDA || r.Data != "" || r.Model != "" || r.Isolate:
		return 1
	}
	return 0
}
