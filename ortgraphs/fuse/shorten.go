package fuse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// shorten saves memory between the two passes of graphs that compute in bf16. Some regions normalize an f32 tensor
// that every other region has finished with. Such a region then reads the normalized values, stored in bf16, instead
// of the tensor. That halves the memory. The traffic stays equal: an earlier region writes the values, which costs as
// many bytes as the last region saves. Normalized values are of the order of 1. The tensor itself is not rounded.
func (d *derivation) shorten(nodes []*Node) {
	if !slices.ContainsFunc(nodes, func(n *Node) bool {
		return n.Kind == Product && n.Out[0].Type == onnxpb.TensorProto_BFLOAT16
	}) {
		return
	}
	for _, n := range nodes {
		dropped := n.group == nil
		if !dropped && n.Kind == Elementwise && n.fusible() && !n.Inline && n.Out[0].Type == onnxpb.TensorProto_FLOAT &&
			!d.outputs[n.Out[0]] {
			d.shortenNormal(n.Out[0])
		}
	}
}

// shortenNormal shortens the normalized values of a tensor that the last region that reads it needs.
func (d *derivation) shortenNormal(x *Tensor) {
	own := x.From.group
	groups := []*group{own}
	for _, u := range d.uses[x] {
		if g := u.node.group; !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.turn, b.turn) })
	last := groups[len(groups)-1]
	chain := d.normalization(x, last)
	if chain == nil {
		return
	}
	first := own // that has all of what the chain needs
	for _, n := range chain {
		for _, o := range n.In {
			if from := o.Tensor.From; from != nil && from.group != last && from.group.turn > first.turn {
				first = from.group
			}
		}
	}
	before := groups[len(groups)-2]
	if slices.Contains(groups, first) && first.nodes[0].fusible() &&
		2*(last.turn-max(before.turn, first.turn)) > last.turn-first.turn {
		d.keepShort(chain, first, last)
	}
}

// normalization returns the nodes of a region that subtract something small from a tensor and multiply the difference
// with something small, or divide it, if nothing else in the region reads the tensor or the difference.
func (d *derivation) normalization(x *Tensor, g *group) []*Node {
	if !g.nodes[0].fusible() || g == x.From.group {
		return nil
	}
	var chain []*Node
	t := x
	for _, ops := range [][]string{{"Sub"}, {"Mul", "Div"}} {
		inside := slices.DeleteFunc(slices.Clone(d.uses[t]), func(u use) bool { return u.node.group != g })
		if len(inside) != 1 || t != x && len(d.uses[t]) != 1 {
			return nil
		}
		n, at := inside[0].node, inside[0].operand
		if n.Kind != Elementwise || n.Inline || !slices.Contains(ops, n.Op) || n.Op != "Mul" && at != 0 ||
			n.Out[0].Elements() != x.Elements() || n.Out[0].Type != x.Type {
			return nil
		}
		if other := n.In[1-at].Tensor; other.Elements()*8 > x.Elements() || other.From != nil && other.From.group == g {
			return nil
		}
		chain, t = append(chain, n), n.Out[0]
	}
	if d.outputs[t] || slices.ContainsFunc(d.uses[t], func(u use) bool { return u.node.group != g }) {
		return nil
	}
	return chain
}

// keepShort makes one group compute the result of nodes and write it in bf16, and another one, which has the nodes,
// read it.
func (d *derivation) keepShort(chain []*Node, first, last *group) {
	normal := chain[len(chain)-1].Out[0]
	added := make([]*Node, 0, len(chain)+1)
	t := chain[0].In[0].Tensor
	for i, n := range chain {
		c := n.again()
		if i > 0 {
			at := slices.IndexFunc(c.In, func(o Operand) bool { return o.Tensor == chain[i-1].Out[0] })
			c.In[at].Tensor = t
		}
		added = append(added, c)
		t = d.result(c, n.Out[0].Name, n.Out[0].Type, n.Out[0].Shape)
	}
	narrow := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{{Tensor: t}}}
	short := d.result(narrow, normal.Name, onnxpb.TensorProto_BFLOAT16, normal.Shape)
	widen := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{{Tensor: short}}}
	wide := d.result(widen, normal.Name, normal.Type, normal.Shape)
	added = append(added, narrow)

	before, nodes := []*iteration{iterate(first.nodes), iterate(last.nodes)}, [][]*Node{first.nodes, last.nodes}
	readers := slices.Clone(d.uses[normal])
	d.read(readers, normal, wide)
	d.enter(added, first)
	d.enter([]*Node{widen}, last)
	first.nodes = slices.Concat(first.nodes, added)
	last.nodes = append([]*Node{widen}, without(last.nodes, chain)...)
	if d.fits(first, before[0]) && d.fits(last, before[1]) && d.drop(normal.From) {
		return
	}
	d.read(readers, wide, normal)
	d.leave(append(added, widen))
	first.nodes, last.nodes = nodes[0], nodes[1]
}

// result gives a new node its tensor.
func (d *derivation) result(n *Node, name string, t shapes.Type, shape []int) *Tensor {
	d.copies++
	return n.makes(fmt.Sprintf("%s/short%d", name, d.copies), t, shape)
}
