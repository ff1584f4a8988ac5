package fuse

import (
	"maps"
	"slices"
)

// joinResults lets the region write results to their places in a Concat, if that is all that reads them: as the
// gradients of queries, keys and values of a merged product.
func (s *separation) joinResults(g *Graph, results []Result) {
	uses := g.uses()
	for _, r := range results {
		if list := uses[r.Out]; len(list) == 1 && list[0].node.Kind == Join && list[0].node.Op == "Concat" {
			s.join(g, list[0].node, results, uses)
		}
	}
}

func (s *separation) join(g *Graph, concat *Node, results []Result, uses map[*Tensor][]use) {
	c := concat.again()
	parts := map[int]Result{} // by their place in results
	start := 0
	for _, o := range concat.In {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Out == o.Tensor })
		if i < 0 || !o.Reshaped() || len(uses[o.Tensor]) != 1 || g.outputs()[o.Tensor] {
			return
		}
		r := results[i]
		r.Views = slices.Concat(r.Views, o.Views)
		r.Out, r.Axis, r.Start = c.Out[0], c.Axes[0], start
		if _, _, ok := r.Distances(); !ok {
			return
		}
		parts[i] = r
		start += o.Shape()[r.Axis]
	}
	s.nodes = append(s.nodes, c)
	whole := s.turnJoined(c, uses[concat.Out[0]], g.outputs()[concat.Out[0]], parts)
	for i, r := range parts {
		r.Out = whole
		results[i] = r
	}
	for i, o := range g.Outputs {
		if o.Tensor == concat.Out[0] {
			g.Outputs[i].Tensor = whole
		}
	}
}

// turnJoined lets the readers of a Concat read what the region writes: the Concat, or, if all of them begin with the
// same views, it as seen through these, as far as the kernels can write the parts so.
func (s *separation) turnJoined(c *Node, readers []use, output bool, parts map[int]Result) *Tensor {
	whole, n := c.Out[0], 0
	if !output {
		n = commonOrder(readers, func(views []View) bool {
			_, ok := moved(parts, views)
			return ok
		})
	}
	for _, u := range readers {
		o := &u.node.In[u.operand]
		if n > 0 && whole == c.Out[0] {
			views := slices.Clone(o.Views[:n])
			t := &Node{Kind: Elementwise, Op: "Copy", In: []Operand{{whole, views}}}
			s.nodes = append(s.nodes, t)
			whole = t.makes(whole.Name+"/ordered", whole.Type, views[n-1].To)
			all, _ := moved(parts, views)
			maps.Copy(parts, all)
		}
		*o = Operand{whole, slices.Clone(o.Views[n:])}
	}
	return whole
}

// moved returns the parts of a Concat as parts of what views show of it.
func moved(parts map[int]Result, views []View) (all map[int]Result, ok bool) {
	all = map[int]Result{}
	for i, r := range parts {
		for _, v := range views {
			if r, ok = r.moved(v); !ok {
				return nil, false
			}
		}
		if _, _, ok = r.Distances(); !ok {
			return nil, false
		}
		all[i] = r
	}
	return all, true
}

// moved returns a part of a tensor as part of what a view shows of the tensor, if it is one dimension of that.
func (r Result) moved(v View) (Result, bool) {
	shape := slices.Clone(v.To)
	part := View{Op: v.Op, From: r.Shape(), To: shape, Perm: v.Perm}
	switch v.Op {
	case Transpose:
		r.Axis = slices.Index(v.Perm, r.Axis)
		shape[r.Axis] = part.From[v.Perm[r.Axis]]
	case Reshape:
		outer, step := product(v.From[:r.Axis]), product(v.From[r.Axis+1:])
		size := part.From[r.Axis]
		axis := 0
		for n := 1; axis < len(v.To) && (n != outer || v.To[axis] == 1); axis++ {
			n *= v.To[axis]
		}
		if axis == len(v.To) {
			return r, false
		}
		inner := product(v.To[axis+1:])
		if r.Start*step%inner != 0 || size*step%inner != 0 {
			return r, false
		}
		r.Axis, r.Start = axis, r.Start*step/inner
		shape[axis] = size * step / inner
	}
	r.Views = append(slices.Clone(r.Views), part)
	r.Out = &Tensor{Shape: v.To}
	return r, true
}
