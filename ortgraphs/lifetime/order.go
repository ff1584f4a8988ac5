package lifetime

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// order returns the nodes of a graph in the order in which ONNX Runtime runs them: that of a depth-first search from
// the nodes whose results no other node reads. The last one in the file comes first, and so does the last one of those
// that a node reads from.
func order(r *shapes.Result) []*shapes.Node {
	at, read := map[*shapes.Node]int{}, map[*shapes.Node]bool{}
	for i, n := range r.Nodes {
		at[n] = i
		for _, v := range n.Reads() {
			if v != nil && v.From != nil {
				read[v.From] = true
			}
		}
	}
	type entry struct {
		node *shapes.Node
		done bool // what it reads
	}
	var stack []entry
	for _, n := range r.Nodes {
		if !read[n] {
			stack = append(stack, entry{n, false})
		}
	}
	var list []*shapes.Node
	seen := map[*shapes.Node]bool{}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if e.done {
			list = append(list, e.node)
			continue
		}
		if seen[e.node] {
			continue
		}
		seen[e.node] = true
		stack = append(stack, entry{e.node, true})
		var sources []*shapes.Node
		for _, v := range e.node.Reads() {
			if v != nil && v.From != nil && !seen[v.From] {
				sources = append(sources, v.From)
			}
		}
		slices.SortFunc(sources, func(a, b *shapes.Node) int { return cmp.Compare(at[a], at[b]) })
		for _, n := range sources {
			stack = append(stack, entry{n, false})
		}
	}
	return list
}
