package fuse

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// RecurrenceKernel computes all steps of some Scans, such as an LSTM or its gradient, in one launch. They do not depend
// on each other: for instance, the two directions of a layer. Without the kernel, every node of every step is a launch.
type RecurrenceKernel struct {
	// Of is what each Scan computes.
	Of map[*Node]*Recurrence
	// Parts is into how many parts the blocks are divided; 0 stands for as many as a region has Scans.
	Parts int
}

// Recurrence is what a Scan computes.
type Recurrence struct {
	// Step computes one step. It reads what the node reads, in the same order: first what a step passes on to the next
	// one, then the items of the sequences, and what stays the same. Its outputs are those of the node: what it passes
	// on, and the items of the results.
	Step *Graph
	// Steps is their number, Carries that of the values that are passed on, Sequences that of the sequences read.
	Steps, Carries, Sequences int
	// Backwards says which of the sequences are read from their end, BackwardsOut which results are written so.
	Backwards, BackwardsOut []bool
}

// Limits of a kernel: each of its recurrences has a part of the GPU, and ONNX Runtime passes at most 256 pointers to a
// call.
const (
	maxRecurrences       = 4
	maxRecurrenceTensors = 240
)

// RoundsAsNodes is false: a product adds its terms in an order of its own.
func (w *RecurrenceKernel) RoundsAsNodes() bool { return false }

func (w *RecurrenceKernel) group(nodes []*Node) (groups [][]*Node) {
	tensors := 0
	for _, n := range nodes {
		own := len(n.In) + len(n.Out)
		last := len(groups) - 1
		if tensors += own; last < 0 || len(groups[last]) == maxRecurrences || tensors > maxRecurrenceTensors {
			groups, tensors, last = append(groups, nil), own, last+1
		}
		groups[last] = append(groups[last], n)
	}
	return groups
}

func (w *RecurrenceKernel) complete(r *Region) {
	c := w.Of[r.Nodes[0]]
	r.Domain = append([]int{c.Steps}, c.Step.Outputs[0].Shape...)
}

func (w *RecurrenceKernel) ops(r *Region) string {
	c, count := w.Of[r.Nodes[0]], ""
	if len(r.Nodes) > 1 {
		count = fmt.Sprintf("%d times ", len(r.Nodes))
	}
	return fmt.Sprintf("%srecurrence of %d steps: %s", count, c.Steps, pointwise{}.ops(&Region{Nodes: c.Step.Nodes}))
}

// count has the kernel that clears the counters, too.
func (w *RecurrenceKernel) count(*Ledger, *Region) (kernels int) { return 2 }

// findRecurrences sets apart the Scans whose steps consist of matrix products and of what can be computed element by
// element. One launch has those with the same number of Scans on the longest way to them: they do not depend on each
// other. A Scan that cannot be part of a launch has none with others.
func findRecurrences(g *Graph) {
	type kind struct{ depth, steps int }
	kernels, depths := map[kind]*RecurrenceKernel{}, map[*Node]int{}
	uses, outputs := g.uses(), g.outputs()
	written := func(t *Tensor) bool { return outputs[t] || len(uses[t]) > 0 }
	for _, n := range g.Nodes {
		for _, o := range n.In {
			if o.Tensor != nil && o.Tensor.From != nil {
				depths[n] = max(depths[n], depths[o.Tensor.From])
			}
		}
		if n.Kind != Opaque || n.Op != "Scan" || n.work != nil {
			continue
		}
		c := recurrenceOf(n)
		if depths[n]++; c == nil {
			continue
		}
		if r := recurrenceRegion(n, c, written); g.Unsupported != nil && g.Unsupported(r) != nil {
			n.work = &RecurrenceKernel{Of: map[*Node]*Recurrence{n: c}}
			continue
		}
		k := kind{depths[n], c.Steps}
		if kernels[k] == nil {
			kernels[k] = &RecurrenceKernel{Of: map[*Node]*Recurrence{}}
		}
		n.work, kernels[k].Of[n] = kernels[k], c
	}
}

// recurrenceRegion is the region of a Scan that has the smallest part of a launch.
func recurrenceRegion(n *Node, c *Recurrence, written func(*Tensor) bool) *Region {
	r := &Region{Nodes: []*Node{n}, Work: &RecurrenceKernel{Of: map[*Node]*Recurrence{n: c}, Parts: maxRecurrences}}
	for _, o := range n.In {
		if !slices.Contains(r.In, o.Tensor) {
			r.In = append(r.In, o.Tensor)
		}
	}
	for _, t := range n.Out {
		if written(t) {
			r.Out = append(r.Out, t)
		}
	}
	return r
}

// recurrenceOf returns what a Scan computes, or nil if a step has other nodes.
func recurrenceOf(n *Node) *Recurrence {
	called := func(n *onnxpb.NodeProto) bool { return n.GetDomain() != "" } // a function, in which noisy puts no noise
	c := stepOf(n.Model)
	if c == nil || slices.ContainsFunc(n.Model.Attribute("body").GetG().Node, called) ||
		slices.ContainsFunc(c.Step.Nodes, func(n *Node) bool {
			return n.Kind != Elementwise && n.Kind != Product && !(n.Kind == Join && n.Op == "Concat")
		}) {
		return nil
	}
	return c
}

// stepOf returns a Scan whose step is lowered, or nil if its shapes are not known.
func stepOf(m *shapes.Node) *Recurrence {
	body := m.Attribute("body").GetG()
	if body == nil || m.Step == nil || m.Steps < 1 || slices.Contains(m.Out, nil) || slices.Contains(m.Reads(), nil) {
		return nil
	}
	r := &shapes.Result{Model: &onnxpb.ModelProto{Graph: body}, Nodes: m.Step.Nodes}
	for i, v := range body.Input {
		r.Inputs = append(r.Inputs, m.Step.Value(v.GetName()))
		if r.Inputs[i].Data != nil {
			return nil
		}
	}
	for _, c := range m.Captured {
		r.Inputs = append(r.Inputs, m.Step.Value(c.Name))
	}
	for _, v := range body.Output {
		r.Outputs = append(r.Outputs, m.Step.Value(v.GetName()))
	}
	step, err := Lower(r)
	if err != nil {
		return nil
	}
	sequences := integer(m, "num_scan_inputs", 0)
	c := &Recurrence{Step: step, Steps: int(m.Steps), Carries: len(body.Input) - sequences, Sequences: sequences}
	c.Backwards = directions(m, "scan_input_directions", sequences)
	c.BackwardsOut = directions(m, "scan_output_directions", len(body.Output)-c.Carries)
	return c
}

// directions says which sequences a Scan takes from their end.
func directions(n *shapes.Node, attribute string, count int) []bool {
	backwards := make([]bool, count)
	if a := n.Attribute(attribute); a != nil {
		for i, d := range a.Ints[:min(count, len(a.Ints))] {
			backwards[i] = d == 1
		}
	}
	return backwards
}
