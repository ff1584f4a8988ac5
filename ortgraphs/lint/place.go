package lint

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// placement lists the values that are in host memory when the CUDA provider runs the graph. ONNX Runtime keeps shape
// arithmetic on the CPU: a node whose inputs are all there (or constants) is placed there too.
type placement struct {
	host map[*shapes.Value]bool
	cpu  map[*shapes.Node]bool
}

func place(r *shapes.Result) placement {
	p := placement{host: map[*shapes.Value]bool{}, cpu: map[*shapes.Node]bool{}}
	for _, n := range r.Nodes {
		switch {
		case n.Op() == "Shape" || n.Op() == "Size": // GPU kernels that write to host memory
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
