// Package cudac writes the CUDA C++ of regions: a program for each, which computes the whole region.
//
//	k, err := cudac.Generate(region, cudac.TargetOf(card.Capability, cudac.Multiprocessors{}))
//	...
//	compile(cudac.Prelude + k.Source)
//
// Threads are divided into rows and columns of the region's domain (shape.go). There are three kinds of programs: one
// keeps a row in registers, because it reduces rows (rows.go); one computes each place on its own (columns.go); one
// transposes squares in shared memory (tile.go). The first two can also sum columns (sums.go). What they compute at a
// place is in body.go and nodes.go, and where its operands are in memory in places.go.
//
// Attention has kernels that are written by hand, as templates (attention.cuh and others), and functions of scores and
// places that are generated (attentionscores.go). On some GPUs, they multiply by warpgroups (warpgroups.cuh), and one
// block computes all gradients of a head (attentionblock.go).
package cudac
