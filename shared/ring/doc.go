// Package ring implements the memory that the host and its plugins share: a sealed memfd that is divided into slots of
// equal size. A slot holds the tensors of one batch and nothing else. Control messages carry their meaning (bucket,
// rows, keys), so tensors are never serialized.
//
// A Layout gives the offset of each tensor in a slot, for one bucket. The host computes it once:
//
//	layout := ring.NewLayout(inputs, intermediates)
//	r, err := ring.Create(50, layout.Size)
//	...
//	mel := layout.View(r.Slot(0), "mel_spectrograms") // bytes of f32[B,T_mel,80]
//
// A slot has one owner at a time, which the host decides. The package does not lock. Guard words after every tensor
// show that a stage wrote past the end of a tensor.
package ring
