package place

import "github.com/xtts-host/xtts-host/gpu"

// The recommended share of a card's memory for a role, and its minimum on a small card. Source: the dual-GPU training
// of MyXTTSModel (gpu_memory.py and its guide), as fractions of the card's total memory; its small cards have 8 to 12
// GB.
const (
	dataFraction, modelFraction = 0.33, 0.67
	smallCard                   = 12 << 30
	smallData, smallModel       = 4096 * gpu.MB, 8192 * gpu.MB
)

// OptimalLimits returns the recommended memory limit of each role, in bytes: a third of the data GPU, two thirds of the
// model GPU, by their total memory. On a card of less than 12 GiB this is too little in addition to CUDA's own memory:
// there it is 4096 and 8192 MB, but at most nine tenths of the card.
func OptimalLimits(dataTotal, modelTotal int64) (data, model int64) {
	return optimal(dataTotal, dataFraction, smallData), optimal(modelTotal, modelFraction, smallModel)
}

func optimal(total int64, fraction float64, small int64) int64 {
	if total < smallCard {
		return min(small, total/10*9) / gpu.MB * gpu.MB
	}
	return int64(float64(total)*fraction) / gpu.MB * gpu.MB
}

// sharedLimits is OptimalLimits for a card that has both roles: the sum is at most the whole card.
func sharedLimits(total int64) (data, model int64) {
	fraction := func(f float64) int64 { return int64(float64(total)*f) / gpu.MB * gpu.MB }
	return fraction(dataFraction), fraction(modelFraction)
}
