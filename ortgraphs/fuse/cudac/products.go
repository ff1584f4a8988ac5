package cudac

import (
	_ "embed"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// Addresses is the program that precedes the launch of a library for many products: the library reads the addresses of
// their matrices from the memory of the GPU. The function writes them to the beginning of the scratch memory: those of
// the left matrices, the right ones and the results. The rest of the scratch memory, from a multiple of
// [WorkspaceAlign] bytes on, is the library's.
//
//go:embed addresses.cuh
var Addresses string

const (
	// WorkspaceAlign is the alignment of the library's memory, and the least size.
	WorkspaceAlign = 256
	// workspace is its size for products in TF32, which are faster with it. Those in bf16 are not: with this size,
	// cuBLAS chose kernels that took up to 15 % longer.
	workspace = 1 << 20
	// plannedWorkspace is its size for a planned product. With 32 MiB, those with a bias took as long, and most of the
	// others.
	plannedWorkspace = WorkspaceAlign
	// convolutionWorkspace is its size for a convolution: the sums of gradients of weights are divided among
	// multiprocessors, and their parts are in it.
	convolutionWorkspace = 32 << 20
)

// newProducts is the kernel of a region of products.
func newProducts(r *fuse.Region, p *fuse.Products) *Kernel {
	if p.Planned {
		return newPlanned(r, p)
	}
	k := &Kernel{Source: Addresses}
	for operand := range 2 {
		for _, n := range r.Nodes {
			k.In = append(k.In, n.In[operand].Tensor)
		}
	}
	for _, n := range r.Nodes {
		k.Out = append(k.Out, n.Out[0])
	}
	pointers := len(k.In) + len(k.Out)
	k.Scratch = TablesBytes(p.Count) + workspace
	if isShort(p.Type) {
		k.Scratch = TablesBytes(p.Count) + WorkspaceAlign
	}
	// The function has all pointers of the call as one structure.
	k.Launches = []Launch{
		{Function: "addresses", Blocks: [2]int{1, 1}, Threads: pointers, Arguments: []int{0}}, {Products: p},
	}
	return k
}

// newPlanned is the kernel of a product for which the library chooses an algorithm.
func newPlanned(r *fuse.Region, p *fuse.Products) *Kernel {
	n := r.Nodes[0]
	k := &Kernel{Scratch: plannedWorkspace, Out: r.Out, Launches: []Launch{{Products: p}}}
	if a := p.Gelu; a != nil && len(r.Out) == 2 {
		k.Out = []*fuse.Tensor{a.Out[0], n.Out[0]}
	}
	for _, o := range n.In {
		k.In = append(k.In, o.Tensor)
	}
	return k
}

// TablesBytes is the memory of the addresses of so many products.
func TablesBytes(products int) int {
	const address = 8
	return ceil(3*products*address, WorkspaceAlign) * WorkspaceAlign
}

// newConvolution is the kernel of a convolution.
func newConvolution(r *fuse.Region, c *fuse.Convolution) *Kernel {
	return &Kernel{
		Scratch: convolutionWorkspace, In: c.In[:], Out: r.Out, Launches: []Launch{{Convolution: c}},
	}
}
