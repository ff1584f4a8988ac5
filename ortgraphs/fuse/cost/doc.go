// Package cost predicts what a step of a fused graph takes on a GPU, from bytes, operations and launches, and names
// what costs more than twice its floor:
//
//	regions := fuse.Partition(g) // and kernels, by region, of package cudac
//	card, ok := cost.CardOf("NVIDIA H200")
//	...
//	p := cost.Of(g, regions, kernels, nil, cost.Settings{Card: card})
//
// The floor of a kernel is the larger of two times: that of the bytes which it must move, at the bandwidth of the
// card's data sheet, and that of its operations, at the data sheet's rate for their precision. What is expected comes
// from the same numbers, by a few constants that were measured and have a physical meaning; none is that of a model.
// docs/results/history-fusion.md has predictions beside measured steps.
package cost
