package lint

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// placement says which values lie in the host's memory when the CUDA provider runs the graph. ONNX Runtime keeps the
// arithmetic on shapes on the CPU: a node all of whose inputs are there (or constants) is put there too.
type placement struct {
	host map[*shapes.Value]bool
	cpu  map[*shapes.Node]bool
}

func place(r *shapes.Result) placement {
	p := placement{host: map[*shapes.Value]bool{}, cpu: map[*shapes.Node]bool{}}
	for _, n := range r.Nodes {
		switch {
		case n.Op() == "Shape" || n.Op() == "Size": // kernels of the GPU that write to the host's memory
		case n.Op() == "MemcpyToHost":
		case p.onCPU(n):
			p.cpu[n] = true
		default:
			continue
		}
		for _, v := range n.Out {
			if v != nil {
				p.host[v] = true
			}
		}
	}
	return p
}

func (p placement) onCPU(n *shapes.Node) bool {
	computed := false
	for i, v := range n.In {
		switch {
		case v == nil || v.Constant:
		case !p.host[v]:
			return false
		case !slices.Contains(onHost[n.Op()], i):
			computed = true
		}
	}
	return computed && n.Op() != "MemcpyFromHost"
}
