// Package fuse divides a graph into regions that one GPU kernel each could compute.
//
// A step that runs as exported spends most of its time between the matrix products: each elementwise node, reduction
// and transpose reads its operands from memory and writes its result back. A region reads what it needs once, and
// writes only what other nodes need. No rule knows a model; the rules are those of operators:
//
//	r, err := shapes.Infer(model, shapes.Sizes{"B": 16, "T_text": 128, "T_mel": 448})
//	...
//	g, err := fuse.Lower(r)      // fixed sizes, few kinds of nodes, views as parts of operands
//	regions := fuse.Partition(g) // which changes g
//
// [Graph.Model] writes the graph as an ONNX model again, in which one node runs the kernel of a region. [NewLedger]
// counts the kernels and bytes before and after. The same model and sizes always give the same regions.
package fuse
