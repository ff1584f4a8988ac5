// Package ring is the memory that the host and its plugins share: a sealed memfd, cut into slots of one size.
// A slot holds the tensors of one batch and nothing else; what they mean (bucket, rows, keys) travels in the
// control messages, so tensors are never serialised.
//
// Where a tensor lies in a slot depends on the bucket and is fixed by a Layout, which the host computes once:
//
//	layout := ring.NewLayout(inputs, intermediates)
//	r, err := ring.Create(50, layout.Size)
//	...
//	mel := layout.View(r.Slot(0), "mel_spectrograms") // bytes of f32[B,T_mel,80]
//
// A slot has one owner at a time, decided by the host's routing; the package does no locking. Guard words behind
// every tensor reveal a stage that wrote beyond its own.
package ring
