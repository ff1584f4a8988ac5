package fuse

import (
	"fmt"
	"math"
	"slices"
)

// maxDerived is how many nodes one after another are computed again in place of a tensor that a region reads.
const maxDerived = 12

// derivation replaces tensors that regions read by what they are computed from.
type derivation struct {
	*partition
	copies int
}

// derive lets a region compute again what it reads, if all that this needs is in memory and costs no more bytes. So
// what the forward pass has written for itself, such as the input of a normalization, also serves the backward pass,
// which needs the normalized values: these are not kept in memory from one pass to the other.
func (p *partition) derive() {
	d := &derivation{partition: p}
	p.sort()
	nodes := nodesOf(p.order)
	// What a tensor is computed from may still be read, and then be replaced itself. The second time, what that needs
	// is held for the first.
	for range 2 {
		for _, n := range slices.Backward(nodes) {
			if dropped := n.group == nil; !dropped && n.Kind == Elementwise && n.fusible() && !n.Inline {
				d.replace(n.Out[0])
			}
		}
	}
	d.shorten(nodes)
	p.graph.Nodes = slices.DeleteFunc(p.graph.Nodes, func(n *Node) bool { return n.group == nil })
}

// replace computes a tensor again in the regions that read it: in all of them, so that it is not in memory at all, or
// at least where that needs nothing that the region does not read already.
func (d *derivation) replace(t *Tensor) {
	own := t.From.group
	var readers []*group
	whole, held := !d.outputs[t], map[*Tensor]int{}
	last := own.turn
	for _, u := range d.uses[t] {
		g := u.node.group
		if g == own || slices.Contains(readers, g) {
			continue
		}
		readers = append(readers, g)
		last = max(last, g.turn)
	}
	plans := map[*group]*derived{}
	for _, g := range readers {
		if plan := d.plan(t, g); plan != nil {
			plans[g] = plan
			for x, bytes := range plan.held { // it stays for the last of its readers
				held[x] = max(held[x], bytes)
			}
		} else {
			whole = false
		}
	}
	longer := 0
	for _, bytes := range held {
		longer += bytes
	}
	whole = whole && longer < t.Bytes()*(last-own.turn)
	var undo, always []func()
	for _, g := range readers {
		plan := plans[g]
		if plan == nil || !whole && plan.bytes > 0 {
			continue
		}
		switch back := d.apply(t, g, plan); {
		case back == nil:
			whole = false
		case plan.bytes > 0:
			undo = append(undo, back)
		default:
			always = append(always, back)
		}
	}
	if !d.drop(t.From) {
		whole, undo = false, append(undo, always...)
	}
	if !whole { // the tensor stays in memory
		for _, back := range slices.Backward(undo) {
			back()
		}
	}
}

// derived is how a region computes a tensor again.
type derived struct {
	again map[*Tensor]bool // what is computed again
	bytes int              // that the region reads in addition
	held  map[*Tensor]int  // bytes that stay in memory longer, times the number of groups
}

// plan returns how a region could compute a tensor that it reads; nil if it cannot, or if it would read more than now.
func (d *derivation) plan(t *Tensor, g *group) *derived {
	if !g.nodes[0].fusible() {
		return nil
	}
	in, _, _ := d.traffic(g)
	s := &search{derivation: d, group: g, tensor: t, reads: map[*Tensor]bool{}, known: map[step]int{}, plan: &derived{
		again: map[*Tensor]bool{}, held: map[*Tensor]int{},
	}}
	for _, x := range in {
		s.reads[x] = x != t
	}
	if s.again(t, 0) > t.Bytes() {
		return nil
	}
	s.collect(t, 0)
	return s.plan
}

// search finds the cheapest way for a group to compute a tensor.
type search struct {
	*derivation
	group  *group
	tensor *Tensor
	reads  map[*Tensor]bool // what the group reads in any case
	known  map[step]int     // results of again, which depend on reads
	plan   *derived
}

// step is a tensor on the way to one that is computed again, and how many nodes are between the two.
type step struct {
	tensor *Tensor
	depth  int
}

// impossible is more than all memory.
const impossible = math.MaxInt / 64

// cost returns the bytes that the group has to read in addition for a tensor, from memory or to compute it again.
func (s *search) cost(t *Tensor, depth int) int {
	if s.free(t) {
		return 0
	}
	return min(s.memory(t), s.again(t, depth))
}

// free reports whether a tensor is read as it is: it is read in any case, or small. An operand may be absent.
func (s *search) free(t *Tensor) bool {
	return t == nil || t.Constant || s.reads[t] ||
		t.Elements()*smallPart <= s.tensor.Elements() && (t.From == nil || !t.From.Inline)
}

// memory returns the bytes of a tensor that is in memory in any case.
func (s *search) memory(t *Tensor) int {
	if t.From == nil || !t.From.fusible() || s.outputs[t] ||
		slices.ContainsFunc(s.uses[t], func(u use) bool { return u.node.group != t.From.group }) {
		return t.Bytes()
	}
	return impossible
}

// again returns the bytes that are read to compute a tensor again.
func (s *search) again(t *Tensor, depth int) int {
	n := t.From
	if n == nil || n.Kind != Elementwise || !n.fusible() || n.longRemainder() || depth == maxDerived {
		return impossible
	}
	if total, ok := s.known[step{t, depth}]; ok {
		return total
	}
	total := 0
	for _, o := range n.In {
		total = min(impossible, total+s.cost(o.Tensor, depth+1))
	}
	s.known[step{t, depth}] = total
	return total
}

// collect records what is computed again for a tensor, and what is read for it.
func (s *search) collect(t *Tensor, depth int) {
	s.plan.again[t] = true
	for _, o := range t.From.In {
		c := o.Tensor
		switch {
		case s.free(c) || s.plan.again[c]:
		case s.memory(c) <= s.again(c, depth+1):
			s.reads[c] = true
			clear(s.known)
			s.plan.bytes += c.Bytes()
			s.plan.held[c] = c.Bytes() * max(0, s.group.turn-s.lastRead(c))
		default:
			s.collect(c, depth+1)
		}
	}
}

// lastRead returns the turn of the last group that reads a tensor. Inputs of the graph stay in memory.
func (d *derivation) lastRead(t *Tensor) int {
	if t.From == nil || d.outputs[t] {
		return math.MaxInt
	}
	last := 0
	for _, u := range d.uses[t] {
		last = max(last, u.node.group.turn)
	}
	return last
}

// apply makes a group compute a tensor, if one kernel can still compute the group: it returns what undoes that, or nil.
// A node that is computed inline gets a copy of its own, which is inline, too.
func (d *derivation) apply(t *Tensor, g *group, plan *derived) (undo func()) {
	readers := [][]use{nil}
	for _, u := range d.uses[t] {
		switch {
		case u.node.group != g:
		case !u.node.Inline:
			readers[0] = append(readers[0], u)
		case d.mayInline(u.node, plan):
			readers = append(readers, []use{u})
		default:
			return nil
		}
	}
	before, old := iterate(g.nodes), g.nodes
	results := make([]*Tensor, len(readers))
	var added []*Node
	for i, list := range readers {
		if len(list) > 0 {
			var nodes []*Node
			results[i], nodes = d.again(t, plan, i > 0)
			d.read(list, t, results[i])
			added = append(added, nodes...)
		}
	}
	d.enter(added, g)
	undo = func() {
		g.nodes = old
		d.leave(added)
		for i, list := range readers {
			d.read(list, results[i], t)
		}
	}
	if g.nodes = slices.Concat(added, old); d.fits(g, before) {
		return undo
	}
	undo()
	return nil
}

// mayInline reports whether what an inline node reads can be computed inline.
func (d *derivation) mayInline(n *Node, plan *derived) bool {
	height := len(plan.again)
	for ; n.Inline; n = d.uses[n.Out[0]][0].node {
		height++
	}
	for x := range plan.again {
		if divides(x.From) {
			return false
		}
	}
	return height <= maxRecomputed
}

// again returns a copy of a tensor, and the nodes that compute it.
func (d *derivation) again(t *Tensor, plan *derived, inline bool) (*Tensor, []*Node) {
	made := map[*Tensor]*Tensor{}
	var added []*Node
	var copied func(x *Tensor) *Tensor
	copied = func(x *Tensor) *Tensor {
		if !plan.again[x] {
			return x
		}
		inline := inline || x.From.Inline
		if made[x] != nil && !inline { // an inline node has one reader
			return made[x]
		}
		n := x.From.again()
		n.Inline = inline
		for i, o := range n.In {
			n.In[i].Tensor = copied(o.Tensor)
		}
		d.copies++
		n.Out[0].Name = fmt.Sprintf("%s/derived%d", x.Name, d.copies)
		made[x], added = n.Out[0], append(added, n)
		return made[x]
	}
	return copied(t), added
}

// read makes operands that read one tensor read another one.
func (d *derivation) read(list []use, from, to *Tensor) {
	for _, u := range list {
		u.node.In[u.operand].Tensor = to
	}
	d.uses[from] = slices.DeleteFunc(d.uses[from], func(u use) bool { return slices.Contains(list, u) })
	d.uses[to] = append(d.uses[to], list...)
}

// enter makes new nodes part of a group.
func (d *derivation) enter(nodes []*Node, g *group) {
	for _, n := range nodes {
		n.group = g
		for i, o := range n.In {
			d.uses[o.Tensor] = append(d.uses[o.Tensor], use{n, i})
		}
	}
}

// leave removes nodes that nothing reads.
func (d *derivation) leave(nodes []*Node) {
	for _, n := range nodes {
		n.group = nil
		for _, o := range n.In {
			d.uses[o.Tensor] = slices.DeleteFunc(d.uses[o.Tensor], func(u use) bool { return u.node == n })
		}
	}
}

// fits reports whether one kernel can compute the group over the same domain as before, and the groups that compute
// what it reads may write that.
func (d *derivation) fits(g *group, before *iteration) bool {
	it := iterate(g.nodes)
	if it == nil || before == nil || len(g.nodes) > maxNodes ||
		it.axes.elements(it.domain) != before.axes.elements(before.domain) ||
		it.axes.elements(it.row) != before.axes.elements(before.row) || len(it.columns) != len(before.columns) {
		return false
	}
	in, _, out := d.traffic(g)
	if len(in)+len(out) > maxTensors || len(out) > maxOutputs {
		return false
	}
	for _, t := range in {
		if t.From == nil || !t.From.fusible() {
			continue
		}
		if _, _, out := d.traffic(t.From.group); len(out) > maxOutputs {
			return false
		}
	}
	return true
}

// drop removes a node if nothing reads its result any more, and then what only it has read. It removes nothing and
// returns false if no kernel could compute what that leaves of a group: a node may be what relates the dimensions of
// others.
func (d *derivation) drop(n *Node) bool {
	gone := d.unread(n)
	rest := map[*group][]*Node{}
	for _, m := range gone {
		if _, known := rest[m.group]; known {
			continue
		}
		nodes := without(m.group.nodes, gone)
		if len(nodes) > 0 && iterate(nodes) == nil {
			return false
		}
		rest[m.group] = nodes
	}
	for g, nodes := range rest {
		g.nodes = nodes
	}
	d.leave(gone)
	return true
}

// without returns the nodes that are not gone.
func without(nodes, gone []*Node) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return slices.Contains(gone, n) })
}

// unread returns a node whose result nothing reads any more, and then what only it and the nodes before in the list
// have read.
func (d *derivation) unread(n *Node) (gone []*Node) {
	var visit func(n *Node)
	visit = func(n *Node) {
		if n == nil || !n.fusible() || len(n.Out) != 1 || n.group == nil || d.outputs[n.Out[0]] ||
			slices.Contains(gone, n) ||
			slices.ContainsFunc(d.uses[n.Out[0]], func(u use) bool { return !slices.Contains(gone, u.node) }) {
			return
		}
		gone = append(gone, n)
		for _, o := range n.In {
			if o.Tensor != nil {
				visit(o.Tensor.From)
			}
		}
	}
	visit(n)
	return gone
}
