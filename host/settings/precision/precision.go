// Package precision selects the precision of matrix products: the meaning of --precision for a device and a bundle.
//
//	if err := precision.Check(cfg.Precision, gpu); err != nil {
//		return err // says why the device cannot do it
//	}
//	p, err := precision.Resolve(cfg.Precision, gpu, bundle)
package precision

import (
	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Precision is the precision of a run's matrix products.
type Precision struct {
	// Name is F32, TF32 or BF16.
	Name config.Precision
	// Graph is the precision of the training graph: F32 or BF16.
	Graph manifest.DType
	// TF32 allows products of f32 operands to round them to 10 bits of mantissa.
	TF32 bool
}

// leastCapability is the compute capability of the first GPUs with bf16 in hardware.
const leastCapability = 80

// Check refuses a precision that a device does not support. card is nil for the CPU.
func Check(asked config.Precision, card *gpu.Device) error {
	if asked != config.BF16 {
		return nil
	}
	if card == nil {
		return hint.Errorf("train with --precision f32, or on a GPU of compute capability 8.0 or later",
			"--precision bf16 needs a GPU: ONNX Runtime has no bf16 kernels for the CPU")
	}
	if c := card.Capability; c > 0 && c < leastCapability {
		return hint.Errorf("train with --precision f32",
			"--precision bf16 needs a GPU of compute capability 8.0 or later: %s has %d.%d", card, c/10, c%10)
	}
	return nil
}

// Resolve returns the precision of a run on a device. card is nil for the CPU.
func Resolve(asked config.Precision, card *gpu.Device, b *ortgraphs.Bundle) (Precision, error) {
	p := Precision{Name: asked, Graph: manifest.F32}
	switch {
	case asked == config.BF16:
		p.Graph = manifest.BF16
	case asked == config.AutoPrecision && card != nil:
		p.Name = config.TF32
	case asked == config.AutoPrecision, card == nil:
		p.Name = config.F32
	}
	p.TF32 = p.Name != config.F32
	if !b.Manifest.HasPrecision(p.Graph) {
		advice := "export the bundle again"
		if p.Graph == manifest.BF16 {
			advice = "train with --precision f32, or export the bundle with --precision f32,bf16"
		}
		return p, hint.Errorf(advice, "bundle %s has no training graph in %s", b.Dir, p.Graph)
	}
	return p, Check(asked, card)
}

// String describes it for the user.
func (p Precision) String() string {
	switch p.Name {
	case config.TF32:
		return "f32, matrix products in tf32"
	case config.BF16:
		return "f32, matrix products in bf16"
	}
	return string(p.Graph)
}
