package fuse

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// TestDrop: a node that nothing reads any more stays if the rest of its group were two parts without it, which no
// kernel computes. If the rest is one part, the node goes, and what only it has read.
func TestDrop(t *testing.T) {
	for name, apart := range map[string]bool{"two parts": true, "one part": false} {
		t.Run(name, func(t *testing.T) {
			node := func(op string, in ...*Tensor) *Tensor {
				n := &Node{Op: op}
				for _, x := range in {
					n.In = append(n.In, Operand{Tensor: x})
				}
				y := &Tensor{Name: op, Type: onnxpb.TensorProto_FLOAT, Shape: []int{4, 8}, From: n}
				n.Out = []*Tensor{y}
				return y
			}
			x := &Tensor{Name: "x", Type: onnxpb.TensorProto_FLOAT, Shape: []int{4, 8}}
			other := x
			if apart {
				other = &Tensor{Name: "other", Type: onnxpb.TensorProto_FLOAT, Shape: []int{4, 8}}
			}
			first, second := node("Neg", x), node("Exp", other)
			joint := node("Mul", first, second)
			g := &Graph{Inputs: []*Tensor{x, other}, Nodes: []*Node{first.From, second.From, joint.From}}
			p := &partition{graph: g, uses: g.uses(), outputs: map[*Tensor]bool{first: true, second: true}}
			whole := &group{nodes: slices.Clone(g.Nodes)}
			for _, n := range g.Nodes {
				n.group = whole
			}
			if dropped := (&derivation{partition: p}).drop(joint.From); dropped == apart {
				t.Errorf("drop returns %t", dropped)
			}
			if iterate(whole.nodes) == nil {
				t.Error("no kernel computes the group")
			}
			if stays := slices.Contains(whole.nodes, joint.From); stays != apart {
				t.Errorf("the node stays: %t", stays)
			}
		})
	}
}
