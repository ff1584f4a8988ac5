package fuse

import (
	"cmp"
	"slices"
)

// joinReaders joins each node with the regions of its readers, those with the most reads first, as far as one kernel
// can compute them. It begins with the last node: so what only the backward pass reads is computed there, and the
// forward pass does not store it.
func (p *partition) joinReaders() {
	for _, n := range slices.Backward(p.graph.Nodes) {
		if !n.fusible() {
			continue
		}
		var candidates []*group
		readers := map[*group]int{}
		for _, u := range p.uses[n.Out[0]] {
			if u.node.fusible() {
				g := u.node.group
				if readers[g]++; readers[g] == 1 {
					candidates = append(candidates, g)
				}
			}
		}
		slices.SortStableFunc(candidates, func(a, b *group) int { return cmp.Compare(readers[b], readers[a]) })
		for _, g := range candidates {
			p.join(g, n.group)
		}
	}
}

// joinNeighbours joins regions where one reads what the other writes, or both read the same large tensor, if that saves
// bytes.
func (p *partition) joinNeighbours() {
	for _, n := range p.graph.Nodes {
		if !n.fusible() {
			continue
		}
		var candidates []*group
		add := func(other *Node) {
			if other != nil && other.fusible() && !slices.Contains(candidates, other.group) {
				candidates = append(candidates, other.group)
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
			if own := n.group; p.mayJoin(g, own) && p.bytes(g)+p.bytes(own) > p.bytes(g, own) {
				p.join(g, own)
			}
		}
	}
}

// mayJoin reports whether two groups are different ones that may be joined as far as is known. A group that is part of
// another one is empty.
func (p *partition) mayJoin(a, b *group) bool {
	return a != b && len(a.nodes) > 0 && !p.apart[[2]*group{a, b}]
}

// join makes one group of two, if one kernel can compute both and no other node has to run between them.
func (p *partition) join(a, b *group) {
	if !p.mayJoin(a, b) {
		return
	}
	nodes := slices.Concat(a.nodes, b.nodes)
	slices.SortFunc(nodes, func(x, y *Node) int { return cmp.Compare(p.at[x], p.at[y]) })
	first, last := a, b
	if a.turn > b.turn {
		first, last = b, a
	}
	if len(nodes) > maxNodes || p.tooEarly(nodes) || p.detour(first, last) || !p.oneKernel(nodes, a, b) {
		// a detour stays one, whatever is joined on the way
		p.apart[[2]*group{a, b}], p.apart[[2]*group{b, a}] = true, true
		return
	}
	joined := &group{nodes: nodes}
	for _, n := range nodes {
		n.group = joined
	}
	a.nodes, b.nodes = nil, nil
	p.reorder(first, last, joined)
}

// tooEarly reports whether nodes, which are in order, begin before they may.
func (p *partition) tooEarly(nodes []*Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool { return n.after != nil && p.at[nodes[0]] < p.at[n.after] })
}

// oneKernel reports whether one kernel can compute two groups, whose nodes are given in order.
func (p *partition) oneKernel(nodes []*Node, a, b *group) bool {
	in, _, out := p.traffic(a, b)
	if len(out) > maxOutputs || len(in)+len(out) > maxTensors {
		return false
	}
	it := iterate(nodes)
	if it == nil || repeatsRemainders(nodes) {
		return false
	}
	if len(nodes) <= manyNodes {
		return true
	}
	domain, large := it.axes.elements(it.domain), 0
	for _, t := range slices.Concat(in, out) {
		if t.Elements() > domain/smallPart {
			large++
		}
	}
	return large <= maxLarge
}

// detour reports whether a path leads from one group to another, whose turn is later, through a third one. If none
// does, it has visited all groups to which the first one leads and whose turn is before that of the last one.
func (p *partition) detour(first, last *group) bool {
	p.searches++
	open := []*group{first}
	for len(open) > 0 {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		for _, n := range g.nodes {
			for _, t := range n.Out {
				for _, u := range p.uses[t] {
					next := u.node.group
					if next == last && g != first {
						return true
					}
					if next != g && next.turn < last.turn && next.visited != p.searches {
						next.visited = p.searches
						open = append(open, next)
					}
				}
			}
		}
	}
	return false
}

// reorder gives a turn to the group that two have become: before those that detour has visited, and after all others
// between the two.
func (p *partition) reorder(first, last, joined *group) {
	var before, after []*group
	for _, g := range p.order[first.turn+1 : last.turn] {
		if g.visited == p.searches {
			after = append(after, g)
		} else {
			before = append(before, g)
		}
	}
	turn := first.turn
	for _, g := range slices.Concat([]*group{first}, before, []*group{joined}, after) {
		p.order[turn], g.turn = g, turn
		turn++
	}
}
