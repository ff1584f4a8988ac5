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
	var parts []*Result
	for _, o := range concat.In {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Out == o.Tensor })
		if i < 0 || !o.reshaped() || len(uses[o.Tensor]) != 1 || g.outputs()[o.Tensor] {
			return
		}
		parts = append(parts, &results[i])
	}
	c := concat.again()
	s.nodes = append(s.nodes, c)
	start := 0
	for i, r := range parts {
		r.Views = slices.Concat(r.Views, c.In[i].Views)
		r.Out, r.Axis, r.Start = c.Out[0], c.Axes[0], start
		start += c.In[i].Shape()[r.Axis]
	}
	g.replace(concat.Out[0], c.Out[0], uses)
}
