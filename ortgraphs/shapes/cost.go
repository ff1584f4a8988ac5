package shapes

// Cost is the cost of one run of the graph, computed from its shapes.
type Cost struct {
	// FLOPs counts 2mkn for a product of [m, k] and [k, n], and one per element of the largest operand for other nodes.
	// Shape arithmetic and views count nothing; a Scan counts the nodes of its body for each step. The exporter counts
	// in the same way (scripts/xtts_export/cost.py).
	FLOPs float64
	// Bytes sums the inputs and outputs of the same nodes, in bytes. It is an upper bound, because fusion lowers it.
	Bytes float64
	// Peak is the largest memory, in bytes, for values other than inputs, initializers and outputs at one time, if each
	// is freed after its last use and nothing is computed in place.
	Peak int64
	// Unknown is the number of nodes whose shapes are unknown. They count nothing.
	Unknown int
}

// free are operators that cost nothing in a good implementation.
var free = map[string]bool{
	"Reshape": true, "Unsqueeze": true, "Squeeze": true, "Shape": true, "Identity": true, "Constant": true,
	"Range": true, "Expand": true,
}

// IsView reports whether the output is the input's memory with another shape, or needs no memory.
func (n *Node) IsView() bool { return views[n.Op()] }

// views are operators whose output is the input's memory with another shape.
var views = map[string]bool{
	"Reshape": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Identity": true, "Shape": true, "Size": true,
	"Constant": true,
}

// Cost sums the cost of the graph.
func (r *Result) Cost() Cost {
	var c Cost
	owner := map[*Value]*Value{} // the memory of a view belongs to another value
	root := func(v *Value) *Value {
		for owner[v] != nil {
			v = owner[v]
		}
		return v
	}
	last := map[*Value]int{}
	kept := map[*Value]bool{}
	for i, n := range r.Nodes {
		if n.IsView() && len(n.In) > 0 && n.In[0] != nil && len(n.Out) > 0 && n.Out[0] != nil {
			owner[n.Out[0]] = n.In[0]
		}
		for _, v := range n.In {
			if v != nil {
				last[root(v)] = i
			}
		}
	}
	for _, v := range r.Outputs {
		if v != nil {
			kept[root(v)] = true
		}
	}
	var live int64
	for i, n := range r.Nodes {
		known := true
		for _, v := range n.Out {
			known = known && (v == nil || v.Known())
		}
		if !known {
			c.Unknown++
			continue
		}
		if n.Step != nil {
			c.repeat(n.Step.Cost(), n.Steps, live)
		}
		var moved, largest int64
		for _, v := range append(n.In[:len(n.In):len(n.In)], n.Out...) {
			moved += v.Bytes()
			largest = max(largest, v.Elements())
		}
		if !free[n.Op()] && n.Step == nil {
			c.Bytes += float64(moved)
			c.FLOPs += n.flops(largest)
		}
		for _, v := range n.Out {
			if v != nil && !kept[v] && !n.IsView() {
				live += v.Bytes()
			}
		}
		c.Peak = max(c.Peak, live)
		freed := map[*Value]bool{}
		for _, v := range append(n.In[:len(n.In):len(n.In)], n.Out...) {
			if v == nil {
				continue
			}
			if v = root(v); v.From != nil && !kept[v] && !freed[v] && last[v] <= i && !v.From.IsView() {
				freed[v] = true
				live -= v.Bytes()
			}
		}
	}
	return c
}

// repeat adds the steps of a recurrence, which begins with that many live bytes.
func (c *Cost) repeat(step Cost, steps, live int64) {
	c.FLOPs += float64(steps) * step.FLOPs
	c.Bytes += float64(steps) * step.Bytes
	c.Unknown += step.Unknown
	c.Peak = max(c.Peak, live+step.Peak)
}

func (n *Node) flops(largest int64) float64 {
	if a, _, ok := n.MatMulShapes(); ok && len(n.Out) > 0 && n.Out[0].Known() {
		return 2 * float64(product(n.Out[0].Shape)) * float64(a[len(a)-1])
	}
	if n.Op() == "Conv" && len(n.Out) > 0 && n.Out[0].Known() && n.Input(1).Known() {
		return 2 * float64(n.Out[0].Elements()) * float64(product(n.In[1].Shape[1:]))
	}
	return float64(largest)
}
