package fuse_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestThinProducts: products of many terms and few results are sums, with the results of the exported graph. A library
// computes those whose terms are not beside each other in memory, or whose sides are wide.
func TestThinProducts(t *testing.T) {
	const terms = 1 << 14
	for _, tt := range []struct {
		name          string
		rows, columns int
		turned        bool // the terms are the last dimension of the first operand
		sums          bool
	}{
		{"one row", 1, 16, false, true}, {"one column", 16, 1, false, true}, {"taps", 16, 3, false, true},
		{"taps as rows", 5, 8, false, true}, {"a vector of terms", 1, 16, true, true},
		{"terms last", 16, 3, true, false}, {"whole words", 16, 8, false, false}, {"wide", 16, 13, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &builder{Rand: rand.New(rand.NewPCG(1, 2)), graph: &onnxpb.GraphProto{Name: proto.String("thin")}}
			shape := []int{terms, tt.rows}
			if tt.turned {
				shape = []int{tt.rows, terms}
			}
			b.graph.Input = append(b.graph.Input, info("x", shape), info("y", []int{terms, tt.columns}))
			x := b.add("Sign", "x") // the sums are exact
			if !tt.turned {
				x = b.add("Transpose", x, list("perm", 1, 0))
			}
			model := b.outputs(b.add("Neg", b.add("MatMul", x, b.add("Sign", "y"))))
			_, g, _ := partition(t, model, shapes.Sizes{})
			product := slices.ContainsFunc(g.Nodes, func(n *fuse.Node) bool { return n.Kind == fuse.Product })
			if product == tt.sums {
				t.Errorf("a product is left: %t", product)
			}
			rewritten(t, model)
		})
	}
}
