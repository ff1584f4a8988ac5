package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Region is a set of nodes that one kernel computes.
type Region struct {
	// Nodes are in the order of the graph.
	Nodes []*Node
	// In are the tensors that it reads from memory, Out those that it writes.
	In, Out []*Tensor
	// Shapes are those in which the kernel writes Out: of the same elements, but as the model's output or the first
	// reader that is not a region has them.
	Shapes [][]int
	// Read and Written are the bytes of In, as far as they are read, and of Out.
	Read, Written int
	// ColumnSums is the number of sums over the outer axes. Awaited says that a node reads one of them: then the kernel
	// completes all of them, if it can. Otherwise another kernel completes those of many regions.
	ColumnSums int
	Awaited    bool
	// Domain is the shape over which it computes, divided as far as its reshapes need.
	Domain []int
	Work   Work
}

// Limits of one kernel.
const (
	maxNodes   = 500 // of a region
	maxOutputs = 8
	maxTensors = 60 // that it reads and writes
	maxLarge   = 24 // large tensors that a region of more than manyNodes nodes reads and writes
	manyNodes  = 40
)

// group is a region in the making, or a node that no region may contain.
type group struct {
	nodes   []*Node
	work    Work // nil for one that may be joined with others
	turn    int  // its place in an order in which the groups can run
	visited int  // the last search that came here
}

type partition struct {
	graph   *Graph
	at      map[*Node]int // the order of the graph before groups are joined
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	// order has the groups in the order of their turns. A group that is part of another one is empty.
	order []*group
	// apart are pairs of groups that cannot be joined as long as neither is joined with another one.
	apart    map[[2]*group]bool
	searches int
}

// Partition divides the graph into regions and other nodes. It changes the graph first: see passes. The regions are in
// an order in which they can run, and the nodes of each stand together in the graph.
func Partition(g *Graph) []*Region {
	p := &partition{graph: g}
	for _, pass := range passes {
		pass.run(p)
	}
	return p.regions()
}

// makeGroups makes a group of each node with what it computes inline, and of those that are set apart for a region.
func (p *partition) makeGroups() {
	p.at, p.apart, p.uses, p.outputs = map[*Node]int{}, map[[2]*group]bool{}, p.graph.uses(), p.graph.outputs()
	apart := map[Work][]*Node{}
	for _, n := range p.graph.Nodes {
		if n.work != nil {
			apart[n.work] = append(apart[n.work], n)
		}
	}
	for _, n := range slices.Backward(p.graph.Nodes) {
		if n.Inline {
			reader := p.uses[n.Out[0]][0].node.group
			reader.nodes = slices.Insert(reader.nodes, 0, n)
			n.group = reader
			continue
		}
		n.group = &group{nodes: []*Node{n}}
	}
	for w, all := range apart {
		for _, nodes := range w.group(all) {
			whole := &group{nodes: nodes, work: w}
			for _, n := range nodes {
				n.group = whole
			}
		}
	}
	p.sort()
	p.graph.Nodes = nodesOf(p.order)
	for i, n := range p.graph.Nodes {
		p.at[n] = i
	}
}

// traffic returns what groups, as one kernel, read from memory and write to it, and the bytes that they read.
func (p *partition) traffic(groups ...*group) (in []*Tensor, read int, out []*Tensor) {
	inside := func(n *Node) bool { return n != nil && slices.Contains(groups, n.group) }
	type part struct {
		tensor            *Tensor
		axis, start, step int
	}
	parts := map[part]bool{}
	bytes := map[*Tensor]int{}
	for _, g := range groups {
		for _, n := range g.nodes {
			for _, o := range n.In {
				t := o.Tensor
				if inside(t.From) {
					continue
				}
				if _, ok := bytes[t]; !ok {
					in = append(in, t)
					bytes[t] = 0
				}
				key, elements := part{tensor: t}, t.Elements()
				if i := slices.IndexFunc(o.Views, func(v View) bool { return v.Op == Slice }); i >= 0 {
					v := o.Views[i]
					key, elements = part{t, v.Axis, v.Start, v.Step}, min(elements, product(o.Shape()))
				}
				if !parts[key] {
					parts[key] = true
					bytes[t] = min(bytes[t]+elements*int(shapes.ElementSize(t.Type)), t.Bytes())
				}
			}
			for _, t := range n.Out {
				if p.outputs[t] || slices.ContainsFunc(p.uses[t], func(u use) bool { return !inside(u.node) }) {
					out = append(out, t)
				}
			}
		}
	}
	for _, b := range bytes {
		read += b
	}
	return in, read, out
}

// bytes returns what groups, as one kernel, read and write.
func (p *partition) bytes(groups ...*group) int {
	_, total, out := p.traffic(groups...)
	for _, t := range out {
		total += t.Bytes()
	}
	return total
}

func (p *partition) regions() []*Region {
	var list []*Region
	for _, g := range p.order {
		r := &Region{Nodes: g.nodes, Work: g.work}
		if r.Work == nil {
			if !g.nodes[0].fusible() {
				continue
			}
			r.Work = Places{}
		}
		r.In, r.Read, r.Out = p.traffic(g)
		r.Work.complete(r)
		r.Awaited = p.awaited(r)
		for _, t := range r.Out {
			r.Written += t.Bytes()
			r.Shapes = append(r.Shapes, p.stored(t))
		}
		list = append(list, r)
	}
	return list
}

// awaited reports whether a node reads one of the column sums of a region that computes at places.
func (p *partition) awaited(r *Region) bool {
	_, places := r.Work.(Places)
	return places && r.ColumnSums > 0 &&
		slices.ContainsFunc(r.Loops().Columns, func(n *Node) bool { return len(p.uses[n.Out[0]]) > 0 })
}

// stored returns the shape in which a kernel writes a tensor. ONNX Runtime keeps a buffer for the next value of its
// shape: what the forward pass has written is no buffer for the backward pass, because that would be in memory all the
// time.
func (p *partition) stored(t *Tensor) []int {
	for _, o := range p.graph.Outputs {
		if o.Tensor == t {
			return o.Shape
		}
	}
	shape := p.asRead(t)
	if t.From != nil && t.From.after != nil {
		shape = slices.Insert(slices.Clone(shape), 0, 1)
	}
	return shape
}

// asRead returns the shape in which the first node that is no region reads a tensor.
func (p *partition) asRead(t *Tensor) []int {
	for _, u := range p.uses[t] {
		if views := u.node.In[u.operand].Views; !u.node.fusible() && len(views) > 0 && views[0].Op == Reshape {
			return views[0].To
		}
	}
	return t.Shape
}

// sort gives the groups their turns, each after what it reads.
func (p *partition) sort() {
	p.order = nil
	seen := map[*group]bool{}
	var visit func(g *group)
	visit = func(g *group) {
		if seen[g] {
			return
		}
		seen[g] = true
		for _, n := range g.nodes {
			for _, o := range n.In {
				if o.Tensor != nil && o.Tensor.From != nil {
					visit(o.Tensor.From.group)
				}
			}
		}
		g.turn = len(p.order)
		p.order = append(p.order, g)
	}
	for _, n := range p.graph.Nodes {
		visit(n.group)
	}
}

// nodesOf returns the nodes of groups, one group after another.
func nodesOf(groups []*group) []*Node {
	var list []*Node
	for _, g := range groups {
		list = append(list, g.nodes...)
	}
	return list
}
