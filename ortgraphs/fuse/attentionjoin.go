package fuse

import "slices"

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
		if i < 0 || !o.reshaped() || len(uses[o.Tensor]) != 1 || g.outputs()[o.Tensor] {
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
	for i, r := range parts {
		results[i] = r
	}
	g.replace(concat.Out[0], c.Out[0], uses)
}
