package bench

import "slices"

// Where the model and the plugins run. A plugin that cannot use a GPU always runs on the CPU.
const (
	OnCPU        = "CPU"                // no GPU
	PluginsOnCPU = "plugins on the CPU" // the model on a GPU
	OneGPU       = "one GPU"            // shared by plugins and model
	TwoGPUs      = "two GPUs"           // one for the plugins, one for the model
)

// How batches reach the model.
const (
	ComputeOnly    = "compute only"    // two prepared batches in turn: the limit of the device
	Synchronous    = "synchronous"     // a batch is started when the previous one has been trained on
	DoubleBuffered = "double buffered" // batches are prepared during training, with two device slots
	TripleBuffered = "triple buffered" // the same with three device slots
)

// Variant is one way of training.
type Variant struct{ Placement, InputMode string }

// InputModes are the input modes by their names in --input-modes.
var InputModes = map[string]string{
	"compute": ComputeOnly, "synchronous": Synchronous, "double": DoubleBuffered, "triple": TripleBuffered,
}

// Variants returns the variants to measure for a placement, with those input modes; nil means all. With two GPUs it
// includes training with one of them, with and without overlap. The first variant is the reference and always present:
// it needs no plugin and is the same in every placement.
func Variants(placement string, modes []string) []Variant {
	all := []Variant{
		{placement, ComputeOnly}, {placement, Synchronous}, {placement, DoubleBuffered}, {placement, TripleBuffered},
	}
	if placement == TwoGPUs {
		for _, p := range []string{OneGPU, PluginsOnCPU} {
			all = append(all, Variant{p, Synchronous}, Variant{p, TripleBuffered})
		}
	}
	if modes == nil {
		return all
	}
	return slices.DeleteFunc(all,
		func(v Variant) bool { return v.InputMode != ComputeOnly && !slices.Contains(modes, v.InputMode) })
}

// InOrder returns variants in the order of a round, counted from 0. Every second round is reversed, so that a steady
// change, such as a GPU that warms up, affects all variants equally.
func InOrder(variants []Variant, round int) []Variant {
	all := slices.Clone(variants)
	if round%2 == 1 {
		slices.Reverse(all)
	}
	return all
}
