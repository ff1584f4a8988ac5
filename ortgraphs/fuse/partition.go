package fuse

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Region is a set of nodes that one kernel computes.
type Region struct {
	// Nodes are in the order of the graph.
	Nodes []*Node
	// In are the tensors that it reads from memory, Out those that it writes.
	In, Out []*Tensor
	// Shapes are those in which the kernel writes Out: of the same elements, but as the model's output or the first reader that is not
	// a region has them.
	Shapes [][]int
	// Read and Written are the bytes of In, as far as they are read, and of Out.
	Read, Written int
	// ColumnSums is the number of sums over the outer axes, which need a second kernel.
	ColumnSums int
	// Domain is the shape over which it computes, divided as far as its reshapes need.
	Domain []int
	// Attention is nil if the region's nodes are elementwise or reductions.
	Attention *Attention
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
	nodes     []*Node
	attention *Attention
	visited   int // the last search that came here
}

type partition struct {
	graph   *Graph
	at      map[*Node]int
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	of      map[*Node]*group

	searches int
}

// Partition divides the graph into regions and other nodes. It changes the graph first: it chooses the layouts of products, and repeats
// nodes that cost nothing. The regions are in an order in which they can run, and the nodes of each stand together in the graph.
func Partition(g *Graph) []*Region {
	sinkScales(g)
	found := attentions(g)
	swapResults(g)
	sinkTransposes(g)
	splitReductions(g)
	sinkBiases(g)
	shareWindows(g)
	layoutProducts(g)
	recompute(g)
	findWindows(g)
	inlineOperands(g)
	p := &partition{graph: g, at: map[*Node]int{}, uses: g.uses(), outputs: g.outputs(), of: map[*Node]*group{}}
	p.singles(found)
	p.joinReaders()
	p.joinNeighbours()
	p.joinNeighbours()
	p.derive()
	return p.regions()
}

// singles makes a group of each node with what it computes inline, and of each attention.
func (p *partition) singles(found []*attention) {
	for _, n := range slices.Backward(p.graph.Nodes) {
		if n.Inline {
			reader := p.of[p.uses[n.Out[0]][0].node]
			reader.nodes = slices.Insert(reader.nodes, 0, n)
			p.of[n] = reader
			continue
		}
		p.of[n] = &group{nodes: []*Node{n}}
	}
	for _, a := range found {
		whole := &group{nodes: a.nodes, attention: &a.Attention}
		for _, n := range a.nodes {
			p.of[n] = whole
		}
	}
	if len(found) > 0 {
		p.graph.Nodes = p.order()
	}
	for i, n := range p.graph.Nodes {
		p.at[n] = i
	}
}

// joinReaders joins each node with the regions of its readers, those with the most reads first, as far as one kernel can compute them. It
// begins with the last node: so what only the backward pass reads is computed there, and the forward pass does not
// store it.
func (p *partition) joinReaders() {
	for _, n := range slices.Backward(p.graph.Nodes) {
		if !n.fusible() {
			continue
		}
		var candidates []*group
		readers := map[*group]int{}
		for _, u := range p.uses[n.Out[0]] {
			if u.node.fusible() {
				g := p.of[u.node]
				if readers[g]++; readers[g] == 1 {
					candidates = append(candidates, g)
				}
			}
		}
		slices.SortStableFunc(candidates, func(a, b *group) int { return cmp.Compare(readers[b], readers[a]) })
		for _, g := range candidates {
			p.join(g, p.of[n])
		}
	}
}

// joinNeighbours joins regions where one reads what the other writes, or both read the same large tensor, if that saves bytes.
func (p *partition) joinNeighbours() {
	for _, n := range p.graph.Nodes {
		if !n.fusible() {
			continue
		}
		var candidates []*group
		add := func(other *Node) {
			if other != nil && other.fusible() && !slices.Contains(candidates, p.of[other]) {
				candidates = append(candidates, p.of[other])
			}
		}
		for _, o := range n.In {
			add(o.Tensor.From)
			if o.Tensor.Elements()*2 < product(n.domain()) {
				continue
			}
			for _, u := range p.uses[o.Tensor] {
				if u.node.fusible() && product(u.node.domain()) == product(n.domain()) {
					add(u.node)
				}
			}
		}
		for _, g := range candidates {
			own := p.of[n]
			if len(g.nodes) > 0 && g != own && p.bytes(g.nodes)+p.bytes(own.nodes) > p.bytes(p.together(g, own)) {
				p.join(g, own)
			}
		}
	}
}

func (p *partition) together(a, b *group) []*Node {
	nodes := slices.Concat(a.nodes, b.nodes)
	slices.SortFunc(nodes, func(x, y *Node) int { return cmp.Compare(p.at[x], p.at[y]) })
	return nodes
}

// join makes b a part of a, if one kernel can compute both and no other node has to run between them.
func (p *partition) join(a, b *group) {
	if a == b || len(a.nodes) == 0 || len(a.nodes)+len(b.nodes) > maxNodes || p.detour(a, b) || p.detour(b, a) {
		return
	}
	nodes := p.together(a, b)
	if slices.ContainsFunc(nodes, func(n *Node) bool { return n.after != nil && p.at[nodes[0]] < p.at[n.after] }) {
		return
	}
	it := iterate(nodes)
	if it == nil {
		return
	}
	in, _, out := p.traffic(nodes)
	if len(out) > maxOutputs || len(in)+len(out) > maxTensors {
		return
	}
	if len(nodes) > manyNodes {
		domain, large := it.axes.elements(it.domain), 0
		for _, t := range slices.Concat(in, out) {
			if t.Elements() > domain/8 {
				large++
			}
		}
		if large > maxLarge {
			return
		}
	}
	for _, n := range b.nodes {
		p.of[n] = a
	}
	*a = group{nodes: nodes}
	b.nodes = nil
}

// detour reports whether a path leads from a to b through other groups.
func (p *partition) detour(a, b *group) bool {
	p.searches++
	a.visited = p.searches
	open := []*group{a}
	for len(open) > 0 {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		for _, n := range g.nodes {
			for _, t := range n.Out {
				for _, u := range p.uses[t] {
					next := p.of[u.node]
					if next == b && g != a {
						return true
					}
					if next != b && next.visited != p.searches {
						next.visited = p.searches
						open = append(open, next)
					}
				}
			}
		}
	}
	return false
}

// traffic returns what the nodes, as one kernel, read from memory and write to it, and the bytes that they read.
func (p *partition) traffic(nodes []*Node) (in []*Tensor, read int, out []*Tensor) {
	inside := map[*Node]bool{}
	for _, n := range nodes {
		inside[n] = true
	}
	type part struct {
		tensor            *Tensor
		axis, start, step int
	}
	parts := map[part]int{}
	bytes := map[*Tensor]int{}
	for _, n := range nodes {
		for _, o := range n.In {
			t := o.Tensor
			if t.From != nil && inside[t.From] {
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
			if _, ok := parts[key]; !ok {
				parts[key] = elements
				bytes[t] = min(bytes[t]+elements*int(shapes.ElementSize(t.Type)), t.Bytes())
			}
		}
		t := n.Out[0]
		if p.outputs[t] || slices.ContainsFunc(p.uses[t], func(u use) bool { return !inside[u.node] }) {
			out = append(out, t)
		}
	}
	for _, b := range bytes {
		read += b
	}
	return in, read, out
}

func (p *partition) bytes(nodes []*Node) int {
	_, total, out := p.traffic(nodes)
	for _, t := range out {
		total += t.Bytes()
	}
	return total
}

func (p *partition) regions() []*Region {
	var list []*Region
	done := map[*group]bool{}
	p.graph.Nodes = p.order()
	for _, n := range p.graph.Nodes {
		g := p.of[n]
		if done[g] || !n.fusible() && g.attention == nil {
			continue
		}
		done[g] = true
		if g.attention != nil {
			list = append(list, p.attentionRegion(g))
			continue
		}
		it := iterate(g.nodes)
		r := &Region{Nodes: g.nodes, ColumnSums: len(it.columns)}
		r.In, r.Read, r.Out = p.traffic(g.nodes)
		for _, t := range r.Out {
			r.Written += t.Bytes()
			r.Shapes = append(r.Shapes, p.stored(t))
		}
		for _, x := range it.domain {
			r.Domain = append(r.Domain, it.axes.size[x-1])
		}
		list = append(list, r)
	}
	return list
}

func (p *partition) attentionRegion(g *group) *Region {
	a := g.attention
	r := &Region{Nodes: g.nodes, Attention: a, Domain: a.Product.Shape}
	r.In, r.Read, r.Out = p.traffic(g.nodes)
	switch b := a.Backward; {
	case b == nil && a.Reach != nil:
		r.Out = append(r.Out, a.Reach)
	case b != nil:
		r.reads(a.Reach)
		if b.Result != nil {
			r.reads(b.Result.Out)
		}
	}
	for _, t := range r.Out {
		r.Written += t.Bytes()
		r.Shapes = append(r.Shapes, p.stored(t))
	}
	return r
}

// reads adds a tensor that no node reads.
func (r *Region) reads(t *Tensor) {
	r.In = append(r.In, t)
	r.Read += t.Bytes()
}

// stored returns the shape in which a kernel writes a tensor. ONNX Runtime keeps a buffer for the next value of its shape: what the forward
// pass has written is no buffer for the backward pass, because that would be in memory all the time.
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

// order returns the nodes with those of a region together, each after what it reads.
func (p *partition) order() []*Node {
	var out []*Node
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
					visit(p.of[o.Tensor.From])
				}
			}
		}
		out = append(out, g.nodes...)
	}
	for _, n := range p.graph.Nodes {
		visit(p.of[n])
	}
	return out
}
