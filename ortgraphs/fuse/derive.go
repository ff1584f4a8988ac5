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
	turn   map[*group]int // positions in the order of the groups
	copies int
}

// derive lets a region compute again what it reads, if all that this needs is in memory and costs no more bytes. So what the forward pass
// has written for itself, such as the input of a normalization, also serves the backward pass, which needs the normalized values: these
// are not kept in memory from one pass to the other.
func (p *partition) derive() {
	d := &derivation{partition: p, turn: map[*group]int{}}
	nodes := p.order()
	for _, n := range nodes {
		if g := p.of[n]; d.turn[g] == 0 {
			d.turn[g] = len(d.turn) + 1
		}
	}
	for _, n := range slices.Backward(nodes) { // what a tensor is computed from may still be read, and then be replaced itself
		if n.Kind == Elementwise && n.fusible() && !n.Inline {
			d.replace(n.Out[0])
		}
	}
	d.shorten(nodes)
}

// replace computes a tensor again in the regions that read it: in all of them, so that it is not in memory at all, or at least where that
// needs nothing that the region does not read already.
func (d *derivation) replace(t *Tensor) {
	own := d.of[t.From]
	var readers []*group
	whole, held := !d.outputs[t], 0
	last := d.turn[own]
	for _, u := range d.uses[t] {
		g := d.of[u.node]
		if g == own || slices.Contains(readers, g) {
			continue
		}
		readers = append(readers, g)
		last = max(last, d.turn[g])
	}
	plans := map[*group]*derived{}
	for _, g := range readers {
		if plan := d.plan(t, g); plan != nil {
			plans[g] = plan
			held += plan.held
		} else {
			whole = false
		}
	}
	whole = whole && held < t.Bytes()*(last-d.turn[own])
	var undo []func()
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
		}
	}
	if !whole { // the tensor stays in memory
		for _, back := range slices.Backward(undo) {
			back()
		}
	}
	d.drop(t.From)
}

// derived is how a region computes a tensor again.
type derived struct {
	again map[*Tensor]bool // what is computed again
	bytes int              // that the region reads in addition
	held  int              // bytes, times the groups for which they stay in memory longer
}

// plan returns how a region could compute a tensor that it reads; nil if it cannot, or if it would read more than now.
func (d *derivation) plan(t *Tensor, g *group) *derived {
	if g.attention != nil || !g.nodes[0].fusible() {
		return nil
	}
	in, _, _ := d.traffic(g.nodes)
	s := &search{derivation: d, group: g, tensor: t, reads: map[*Tensor]bool{}, plan: &derived{again: map[*Tensor]bool{}}}
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
	plan   *derived
}

// impossible is more than all memory.
const impossible = math.MaxInt / 64

// cost returns the bytes that the group has to read in addition for a tensor, from memory or to compute it again.
func (s *search) cost(t *Tensor, depth int) int {
	if t == nil || t.Constant || s.reads[t] || t.Elements()*8 <= s.tensor.Elements() && (t.From == nil || !t.From.Inline) {
		return 0
	}
	return min(s.memory(t), s.again(t, depth))
}

// memory returns the bytes of a tensor that is in memory in any case.
func (s *search) memory(t *Tensor) int {
	if t.From == nil || !t.From.fusible() || s.outputs[t] || slices.ContainsFunc(s.uses[t], func(u use) bool { return s.of[u.node] != s.of[t.From] }) {
		return t.Bytes()
	}
	return impossible
}

// again returns the bytes that are read to compute a tensor again.
func (s *search) again(t *Tensor, depth int) int {
	n := t.From
	if n == nil || n.Kind != Elementwise || !n.fusible() || n.Inline || depth == maxDerived {
		return impossible
	}
	total := 0
	for _, o := range n.In {
		total = min(impossible, total+s.cost(o.Tensor, depth+1))
	}
	return total
}

// collect records what is computed again for a tensor, and what is read for it.
func (s *search) collect(t *Tensor, depth int) {
	s.plan.again[t] = true
	for _, o := range t.From.In {
		c := o.Tensor // nil if an operand is absent, as a limit of Clip
		if c == nil {
			continue
		}
		switch cost := s.cost(c, depth+1); {
		case s.plan.again[c] || cost == 0 && (c.Constant || s.reads[c] || c.Elements()*8 <= s.tensor.Elements()):
		case s.memory(c) <= s.again(c, depth+1):
			s.reads[c] = true
			s.plan.bytes += c.Bytes()
			s.plan.held += c.Bytes() * max(0, s.turn[s.group]-s.lastRead(c))
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
		last = max(last, d.turn[d.of[u.node]])
	}
	return last
}

// apply makes a group compute a tensor, if one kernel can still compute the group: it returns what undoes that, or nil.
func (d *derivation) apply(t *Tensor, g *group, plan *derived) (undo func()) {
	made := map[*Tensor]*Tensor{}
	var added []*Node
	var again func(x *Tensor) *Tensor
	again = func(x *Tensor) *Tensor {
		if !plan.again[x] {
			return x
		}
		if made[x] != nil {
			return made[x]
		}
		n := *x.From
		n.In = slices.Clone(n.In)
		for i, o := range n.In {
			n.In[i].Tensor = again(o.Tensor)
		}
		d.copies++
		made[x] = &Tensor{Name: fmt.Sprintf("%s/derived%d", x.Name, d.copies), Type: x.Type, Shape: x.Shape, From: &n}
		n.Out = []*Tensor{made[x]}
		added = append(added, &n)
		return made[x]
	}
	result := again(t)
	before, old := iterate(g.nodes), g.nodes
	var changed []use
	for _, u := range d.uses[t] {
		if d.of[u.node] == g {
			changed = append(changed, u)
		}
	}
	d.read(changed, t, result)
	d.enter(added, g)
	undo = func() {
		g.nodes = old
		d.leave(added)
		d.read(changed, result, t)
	}
	if g.nodes = slices.Concat(added, old); d.fits(g, before) {
		return undo
	}
	undo()
	return nil
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
		d.of[n] = g
		for i, o := range n.In {
			d.uses[o.Tensor] = append(d.uses[o.Tensor], use{n, i})
		}
	}
}

// leave removes nodes that nothing reads.
func (d *derivation) leave(nodes []*Node) {
	for _, n := range nodes {
		delete(d.of, n)
		for _, o := range n.In {
			d.uses[o.Tensor] = slices.DeleteFunc(d.uses[o.Tensor], func(u use) bool { return u.node == n })
		}
	}
}

// fits reports whether one kernel can compute the group over the same domain as before, and the groups that compute what it reads may
// write that.
func (d *derivation) fits(g *group, before *iteration) bool {
	it := iterate(g.nodes)
	if it == nil || before == nil || len(g.nodes) > maxNodes || it.axes.elements(it.domain) != before.axes.elements(before.domain) ||
		it.axes.elements(it.row) != before.axes.elements(before.row) || len(it.columns) != len(before.columns) {
		return false
	}
	in, _, out := d.traffic(g.nodes)
	if len(in)+len(out) > maxTensors || len(out) > maxOutputs {
		return false
	}
	for _, t := range in {
		if t.From == nil || !t.From.fusible() {
			continue
		}
		if _, _, out := d.traffic(d.of[t.From].nodes); len(out) > maxOutputs {
			return false
		}
	}
	return true
}

// drop removes a node whose result nothing reads any more, and then what only it has read.
func (d *derivation) drop(n *Node) {
	if n == nil || !n.fusible() || len(n.Out) != 1 || len(d.uses[n.Out[0]]) > 0 || d.outputs[n.Out[0]] {
		return
	}
	g := d.of[n]
	if g == nil { // it went with another node
		return
	}
	rest := slices.DeleteFunc(slices.Clone(g.nodes), func(other *Node) bool { return other == n })
	if len(rest) > 0 && iterate(rest) == nil { // it joins what one kernel cannot compute without it
		return
	}
	g.nodes = rest
	d.graph.Nodes = slices.DeleteFunc(d.graph.Nodes, func(other *Node) bool { return other == n })
	d.leave([]*Node{n})
	for _, o := range n.In {
		if o.Tensor != nil {
			d.drop(o.Tensor.From)
		}
	}
}
