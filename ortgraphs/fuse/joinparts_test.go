package fuse_test

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestJoinParts: a sum of tensors is a Concat if each place has one that is not zero, and computes the same.
func TestJoinParts(t *testing.T) {
	pad := func(b *builder, x string, pads ...int) string { return b.add("Pad", x, b.numbers(pads...)) }
	for name, c := range map[string]struct {
		sum    func(b *builder) string
		joined bool
	}{
		"two": {func(b *builder) string {
			return b.add("Add", pad(b, "x", 0, 3, 0, 0, 0, 0), pad(b, "y", 0, 0, 0, 0, 3, 0))
		}, true},
		"three": {func(b *builder) string {
			first := b.add("Add", pad(b, "x", 0, 3, 0, 0, 3, 0), pad(b, "y", 0, 6, 0, 0, 0, 0))
			return b.add("Add", first, pad(b, b.add("Neg", "x"), 0, 0, 0, 0, 6, 0))
		}, true},
		"different sizes": {func(b *builder) string {
			one := b.add("ReduceSum", "y", b.numbers(1))
			return b.add("Add", pad(b, "x", 0, 0, 0, 0, 1, 0), pad(b, one, 0, 3, 0, 0, 0, 0))
		}, true},
		"zeros of a Concat": {func(b *builder) string {
			zeros := b.add("Expand", b.number(0), b.numbers(2, 3, 4))
			first := b.add("Concat", zeros, "x", attribute("axis", 1))
			return b.add("Add", first, pad(b, "y", 0, 0, 0, 0, 3, 0))
		}, true},
		"a gap": {func(b *builder) string {
			return b.add("Add", pad(b, "x", 0, 4, 0, 0, 0, 0), pad(b, "y", 0, 0, 0, 0, 4, 0))
		}, false},
		"both at one place": {func(b *builder) string {
			return b.add("Add", pad(b, "x", 0, 2, 0, 0, 0, 0), pad(b, "y", 0, 0, 0, 0, 2, 0))
		}, false},
		"two axes": {func(b *builder) string {
			return b.add("Add", pad(b, "x", 0, 3, 0, 0, 0, 1), pad(b, "y", 0, 0, 0, 0, 3, 1))
		}, false},
		"ones": {func(b *builder) string {
			one := b.add("Pad", "x", b.numbers(0, 3, 0, 0, 0, 0), b.number(1))
			return b.add("Add", one, pad(b, "y", 0, 0, 0, 0, 3, 0))
		}, false},
		"what is no part": {func(b *builder) string {
			return b.add("Add", pad(b, "x", 0, 3, 0, 0, 0, 0), b.add("Concat", "x", "y", attribute("axis", 1)))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newForm()
			model := b.outputs(b.add("Exp", c.sum(b)))
			r, g, regions := partition(t, model, shapes.Sizes{})
			concat := func(n *fuse.Node) bool { return n.Op == "Concat" && len(n.In) > 1 }
			sum := func(n *fuse.Node) bool { return n.Op == "Add" }
			joined := slices.ContainsFunc(g.Nodes, concat) && !slices.ContainsFunc(g.Nodes, sum)
			if joined != c.joined {
				t.Errorf("a Concat: %t", joined)
			}
			compare(t, model, r, g, regions, batch(r, nil), 1e-6, 1e-6)
			kernelsOf(t, model, r, g, regions)
		})
	}
}
