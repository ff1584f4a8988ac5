package fuse

import "slices"

// Cancel is a pass that removes two negations, one after the other: the example of docs/compiler.md.
var Cancel = pass{name: "cancel", run: onGraph(cancel), needs: ordered}

func cancel(g *Graph) {
	uses := g.uses()
	for _, n := range g.Nodes {
		if !n.is(Elementwise) || n.Op != "Neg" || !n.In[0].Plain() {
			continue
		}
		if x := n.In[0].Tensor.From; x != nil && x.is(Elementwise) && x.Op == "Neg" && x.In[0].Plain() {
			g.replace(n.Out[0], x.In[0].Tensor, uses)
		}
	}
	g.Nodes = reachable(g)
}

// Square is the kind of a region that multiplies one matrix by itself: the example of docs/compiler.md.
type Square struct{ Rows int }

func (s *Square) RoundsAsNodes() bool                  { return false }
func (s *Square) ops(*Region) string                   { return "square" }
func (s *Square) count(*Ledger, *Region) (kernels int) { return 1 }
func (s *Square) group(nodes []*Node) [][]*Node        { return [][]*Node{nodes} }

func (s *Square) complete(r *Region) {
	r.Domain = r.Out[0].Shape
	s.Rows = r.Domain[0]
}

// SetSquaresApart finds such products.
var SetSquaresApart = pass{name: "setSquaresApart", run: onGraph(setSquaresApart), needs: ordered}

func setSquaresApart(g *Graph) {
	for _, n := range g.Nodes {
		if n.is(Product) && n.In[0].Plain() && n.In[1].Plain() && n.In[0].Tensor == n.In[1].Tensor &&
			n.Transposed == [2]bool{} && len(n.Out[0].Shape) == 2 && !slices.Contains(n.Out[0].Shape, 1) {
			n.work = &Square{}
		}
	}
}
