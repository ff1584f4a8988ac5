package fuse

import "slices"

// joinDepthwise lets the kernels of depthwise convolutions compute what a region computes from their results: the
// thread that has added up the taps has the sum in a register. A region that reduces something stays.
func joinDepthwise(p *partition) {
	for _, n := range slices.Clone(p.graph.Nodes) {
		d, ok := n.work.(*Depthwise)
		if !ok || d.last != n || d.OfWeights {
			continue
		}
		for _, u := range p.uses[n.Out[0]] {
			if g := u.node.group; u.node.fusible() && g != n.group && p.follows(n, g) {
				p.append(d, n.group, g)
			}
		}
	}
}

// follows reports whether the kernel of a convolution, whose last node is given, can compute a group as well.
func (p *partition) follows(last *Node, g *group) bool {
	whole := last.group
	alone := func(n *Node) bool { return n.Kind == Reduction || n.Kind == Cumulation || n.after != nil }
	if slices.ContainsFunc(g.nodes, alone) || p.detour(whole, g) {
		return false
	}
	in, _, out := p.traffic(whole, g)
	if len(out) > maxOutputs || len(in)+len(out) > maxTensors {
		return false
	}
	nodes := slices.Concat(whole.nodes[slices.Index(whole.nodes, last):], g.nodes)
	it := iterate(nodes)
	return it != nil && !repeatsRemainders(nodes) && it.axes.elements(it.domain) == last.Out[0].Elements()
}

// append makes a group part of that of a convolution.
func (p *partition) append(d *Depthwise, whole, g *group) {
	p.detour(whole, g) // which reorder needs
	joined := &group{nodes: slices.Concat(whole.nodes, g.nodes), work: d}
	for _, n := range joined.nodes {
		n.group, n.work = joined, d
	}
	whole.nodes, g.nodes = nil, nil
	p.reorder(whole, g, joined)
}
