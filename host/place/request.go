package place

// What a Request may name beside a GPU.
const (
	Auto = "auto"
	CPU  = "cpu"
	CUDA = "cuda" // as Request.Device
)

// Request is what a person asked for. The zero Request trains on the first GPU, or on the CPU of a machine without one.
type Request struct {
	// Device is Auto (also when empty), CPU, or CUDA, which refuses a machine without a GPU.
	Device string
	// Data and Model name GPUs as gpu.Resolve takes them, or are Auto. Data may be CPU. Both are given, or none.
	Data, Model string
	// Isolate holds each role to a limit of memory: DataLimit and ModelLimit in bytes, 0 for OptimalLimits.
	Isolate               bool
	DataLimit, ModelLimit int64
	// Visible is CUDA_VISIBLE_DEVICES; nil when it is not set.
	Visible *string
}

// Needs returns how many GPUs the request cannot do without: 0 when it would train on the CPU of a machine without one.
func (r Request) Needs() int {
	switch {
	case r.Device == CPU:
		return 0
	case r.Data != "" && r.Model != "" && r.Data != CPU && (r.Data != r.Model || r.Data == Auto):
		return 2
	case r.Device == CUDA || r.Data != "" || r.Model != "" || r.Isolate:
		return 1
	}
	return 0
}
