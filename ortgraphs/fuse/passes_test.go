package fuse

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// lowered returns the graph of a model file.
func lowered(t *testing.T, path string) *Graph {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	model := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, model); err != nil {
		t.Fatal(err)
	}
	r, err := shapes.Infer(model, shapes.Sizes{"B": 3, "T_text": 16, "T_mel": 24, "T_ref_mel": 16})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFacts: what a pass of the graph leaves holds after all later passes, as far as it says so: the pass finds nothing
// more to do. Two of them make other copies each time.
func TestFacts(t *testing.T) {
	for _, path := range []string{
		"../testdata/pico/training_model.onnx", "../builtin/myxtts-nano/training_model.bf16.onnx",
	} {
		for last := range passes {
			if passes[last].leaves&grouped != 0 {
				break
			}
			p := &partition{graph: lowered(t, path)}
			for _, x := range passes[:last+1] {
				x.run(p)
			}
			before := described(p.graph)
			for _, x := range passes[:last+1] {
				if x.leaves&(repeated|inlined) != 0 {
					continue
				}
				if x.run(p); described(p.graph) != before {
					t.Errorf("%s: %s finds more after %s", path, x.name, passes[last].name)
					before = described(p.graph)
				}
			}
		}
	}
}

// described lists the nodes of a graph.
func described(g *Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		fmt.Fprint(&b, n.Op, n.Kind, n.work != nil, n.Axes, n.Transposed, n.Inline, n.Windows)
		for _, o := range n.In {
			if o.Tensor != nil {
				fmt.Fprint(&b, " ", o.Tensor.Name, o.Views)
			}
		}
		for _, t := range n.Out {
			fmt.Fprint(&b, " ", t.Name, t.Shape)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// TestVerify: a fault of any kind is found.
func TestVerify(t *testing.T) {
	find := func(g *Graph, is func(n *Node) bool) *Node { return g.Nodes[slices.IndexFunc(g.Nodes, is)] }
	kind := func(k Kind) func(n *Node) bool { return func(n *Node) bool { return n.Kind == k } }
	viewed := func(op ViewOp) func(n *Node) bool {
		return func(n *Node) bool {
			return n.Kind == Elementwise && len(n.In[0].Views) > 0 && n.In[0].Views[0].Op == op
		}
	}
	for name, fault := range map[string]func(p *partition, g *Graph){
		"order":       func(_ *partition, g *Graph) { slices.Reverse(g.Nodes) },
		"lost node":   func(_ *partition, g *Graph) { g.Nodes = g.Nodes[1:] },
		"dead node":   func(_ *partition, g *Graph) { g.Nodes = append(g.Nodes, scalarNode("Neg")) },
		"no operator": func(_ *partition, g *Graph) { find(g, kind(Elementwise)).Op = "Nothing" },
		"no operand":  func(_ *partition, g *Graph) { find(g, kind(Reduction)).In[0].Tensor = nil },
		"foreign input": func(_ *partition, g *Graph) {
			o := &find(g, kind(Elementwise)).In[0]
			foreign := *o.Tensor
			foreign.From, foreign.Constant, o.Tensor = nil, false, &foreign
		},
		"writer":      func(_ *partition, g *Graph) { g.Nodes[3].Out[0].From = g.Nodes[4] },
		"two writers": func(_ *partition, g *Graph) { g.Nodes[3].Out[0] = g.Nodes[4].Out[0] },
		"two results": func(_ *partition, g *Graph) { g.Nodes[3].Out = append(g.Nodes[3].Out, &Tensor{}) },
		"shape":       func(_ *partition, g *Graph) { find(g, kind(Product)).Out[0].Shape = []int{1, 1} },
		"axes":        func(_ *partition, g *Graph) { find(g, kind(Reduction)).Axes = nil },
		"join":        func(_ *partition, g *Graph) { n := find(g, kind(Join)); n.In = append(n.In, n.In[0]) },
		"transposed": func(_ *partition, g *Graph) {
			n := find(g, kind(Product))
			n.Transposed[0] = !n.Transposed[0]
		},
		"type":   func(_ *partition, g *Graph) { find(g, kind(Product)).Out[0].Type = onnxpb.TensorProto_INT64 },
		"data":   func(_ *partition, g *Graph) { constantIn(g).Data = make([]float64, 7777) },
		"output": func(_ *partition, g *Graph) { g.Outputs[0].Shape = []int{7, 7} },
		"reshape": func(_ *partition, g *Graph) {
			find(g, viewed(Reshape)).In[0].Views[0].From = []int{7}
		},
		"laid out": func(_ *partition, g *Graph) {
			n := find(g, kind(Product))
			n.In[0] = n.In[0].view(swapLast(n.In[0].Shape()))
			n.Transposed[0] = !n.Transposed[0]
		},
		"product":    func(_ *partition, g *Graph) { find(g, kind(Elementwise)).work = &Products{} },
		"conversion": func(_ *partition, g *Graph) { find(g, kind(Product)).work = Biases{} },
		"inline": func(_ *partition, g *Graph) {
			find(g, func(n *Node) bool { return n.Kind == Elementwise && len(g.uses()[n.Out[0]]) > 1 }).Inline = true
		},
		"turn":    func(_ *partition, g *Graph) { g.Nodes[3].group.turn++ },
		"group":   func(_ *partition, g *Graph) { g.Nodes[3].group = &group{} },
		"readers": func(p *partition, g *Graph) { delete(p.uses, g.Nodes[3].Out[0]) },
	} {
		p, holds := &partition{graph: lowered(t, "../testdata/pico/training_model.onnx")}, ordered
		for _, x := range passes {
			x.run(p)
			holds |= x.leaves
		}
		if err := p.verify(holds); err != nil {
			t.Fatal(err)
		}
		fault(p, p.graph)
		if p.verify(holds) == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

func scalarNode(op string) *Node {
	n := &Node{Op: op, In: []Operand{scalar(1, onnxpb.TensorProto_FLOAT)}}
	n.Out = []*Tensor{{Name: op, Type: onnxpb.TensorProto_FLOAT, Shape: []int{}, From: n}}
	return n
}

func constantIn(g *Graph) *Tensor {
	for _, n := range g.Nodes {
		for _, o := range n.In {
			if o.Tensor != nil && o.Tensor.Data != nil {
				return o.Tensor
			}
		}
	}
	return nil
}
