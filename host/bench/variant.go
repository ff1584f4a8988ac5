package bench

import "slices"

// Where the model and the plugins are. A plugin that cannot use a GPU is on the CPU in all of them.
const (
	OnCPU        = "CPU"                // no GPU
	PluginsOnCPU = "plugins on the CPU" // the model on a GPU
	OneGPU       = "one GPU"            // which plugins and model share
	TwoGPUs      = "two GPUs"           // one for the plugins, one for the model
)

// How batches come to the model.
const (
	ComputeOnly    = "compute only"    // two batches by turns, which are in place: what the device can do
	Synchronous    = "synchronous"     // a batch is begun when the one before has been trained on
	DoubleBuffered = "double buffered" // batches are prepared beside training, with two device slots
	TripleBuffered = "triple buffered" // with three
)

// Variant is one way of training.
type Variant struct{ Placement, Feeding string }

// Feedings are all of them by the word that --feedings takes.
var Feedings = map[string]string{"compute": ComputeOnly, "synchronous": Synchronous, "double": DoubleBuffered, "triple": TripleBuffered}

// Variants returns what is measured where training has that placement, of those feedings; nil means of all. With two GPUs these are also the ways to train with one of
// them, with and without overlap. The first is what the others are compared with, and always there: it needs no plugin, and so is
// the same in every placement.
func Variants(placement string, feedings []string) []Variant {
	all := []Variant{{placement, ComputeOnly}, {placement, Synchronous}, {placement, DoubleBuffered}, {placement, TripleBuffered}}
	if placement == TwoGPUs {
		for _, p := range []string{OneGPU, PluginsOnCPU} {
			all = append(all, Variant{p, Synchronous}, Variant{p, TripleBuffered})
		}
	}
	if feedings == nil {
		return all
	}
	return slices.DeleteFunc(all, func(v Variant) bool { return v.Feeding != ComputeOnly && !slices.Contains(feedings, v.Feeding) })
}

// InOrder returns variants in the order in which a round, which counts from 0, measures them: every other round goes backwards, so
// that what changes steadily, such as a card that warms up, falls on all.
func InOrder(variants []Variant, round int) []Variant {
	all := slices.Clone(variants)
	if round%2 == 1 {
		slices.Reverse(all)
	}
	return all
}
