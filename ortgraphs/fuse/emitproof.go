package fuse

import (
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Prover writes the calls of a proof.
type Prover struct {
	// Calls computes a region from the tensors of the plain nodes. Its results are those of Own.
	Calls func(r *Region) []*Call
	// Noise moves the numbers of a tensor as n says.
	Noise func(from, to *Tensor, n Noise) *Call
	// Measure compares a result of a region with the plain one, and with that of moved numbers, which is nil for
	// integers. exact says that no number has moved. The result of the call is a number of integers.
	Measure func(r *Region, own, plain, noisy *Tensor, exact bool) *Call
	// TF32 says that products of f32 round their operands to 10 bits.
	TF32 bool
}

// Noise is what roundings do to the numbers of a tensor.
type Noise struct {
	Units int // in the last place, up or down
	Every int // one of so many numbers moves, at random
}

// Seldom is how many numbers in bf16 have one that moves in a region whose work RoundsAsNodes.
const Seldom = 8

// ProofOutput is the output of a proof that has the results of all calls of Measure, one after another.
const ProofOutput = "proof~measured"

// Proof writes the graph as Model does, without kernels. Beside the plain nodes of each region are those calls that
// compute the same from the same inputs, the nodes once more with every result moved by a rounding, and the calls that
// compare the three. ONNX Runtime computes the regions in their order, and nothing of one is kept for the next. own has
// tensors of their own for the results of regions; a tensor that no plain node computes is its own.
func (g *Graph) Proof(regions []*Region, own map[*Tensor]*Tensor, p Prover) (*onnxpb.ModelProto, error) {
	last := map[*Node]*Region{}
	for _, r := range regions {
		last[r.Nodes[len(r.Nodes)-1]] = r
	}
	w := &proofWriter{emitter: newEmitter(g), prover: p, own: own, exact: exactTensors(g)}
	for _, n := range g.Nodes {
		w.reference(n, nil)
		if r := last[n]; r != nil {
			w.region(r)
		}
		if w.err != nil {
			return nil, w.err
		}
	}
	return w.model(func() {
		for _, n := range slices.Backward(w.measures) { // the last one is computed first
			w.graph.Node = append(w.graph.Node, n)
		}
		w.node("Concat", w.measured, []string{ProofOutput}, integerAttribute("axis", 0))
		w.graph.Output = append(w.graph.Output, valueInfo(ProofOutput, onnxpb.TensorProto_INT64, []int{w.values}))
	})
}

type proofWriter struct {
	*emitter
	prover   Prover
	own      map[*Tensor]*Tensor
	exact    map[*Tensor]bool
	measures []*onnxpb.NodeProto
	measured []string
	values   int
}

func (w *proofWriter) region(r *Region) {
	calls := w.prover.Calls(r)
	if calls == nil {
		return
	}
	noisy := w.noisy(r)
	for _, c := range calls {
		w.call(c)
	}
	for _, t := range r.Out {
		if w.own[t] == t {
			continue
		}
		moved := noisy[t]
		if !moves(t) {
			moved = nil
		}
		c := w.prover.Measure(r, w.own[t], t, moved, w.exact[t])
		nodes := len(w.graph.Node)
		w.call(c)
		w.measures = append(w.measures, w.graph.Node[nodes:]...)
		w.graph.Node = w.graph.Node[:nodes]
		w.measured = append(w.measured, w.stored[c.Out[0]].name)
		w.values += product(c.Shapes[0])
	}
}

// noisy writes the nodes of a region once more, with noise in what they read and compute. It returns the results of
// region's tensors.
func (w *proofWriter) noisy(r *Region) map[*Tensor]*Tensor {
	kept, outputs := maps.Clone(w.stored), w.outputs
	w.outputs = nil
	inside := map[*Tensor]bool{}
	for _, n := range r.Nodes {
		for _, t := range n.Out {
			inside[t] = true
		}
	}
	moved := map[*Tensor]bool{}
	for _, n := range r.Nodes {
		for _, o := range n.In {
			if t := o.Tensor; t != nil && !inside[t] && !moved[t] && !t.Constant {
				moved[t] = true
				if (t.Type == onnxpb.TensorProto_FLOAT && !r.widens(t) || isDouble(t.Type)) && !w.exact[t] {
					w.move(r, t, w.units(r, t))
				}
			}
		}
	}
	for _, n := range r.Nodes {
		if of, ok := n.work.(*RecurrenceKernel); ok {
			w.opaque(of.Of[n].noisy(n, w.prover.TF32))
			continue
		}
		w.reference(n, r)
		if t := n.Out[0]; moves(t) && !w.exact[t] && n.exactness() != operators.Selected {
			w.move(r, t, n.roundings())
		}
	}
	found := map[*Tensor]*Tensor{}
	for _, t := range r.Out {
		if p, ok := w.stored[t]; ok && inside[t] {
			found[t] = &Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
			kept[found[t]] = p
		}
	}
	w.stored, w.outputs = kept, outputs
	return found
}

// units is how far a rounding moves what a region reads: in TF32, what is multiplied, as it is or where Joins put it.
func (w *proofWriter) units(r *Region, t *Tensor) int {
	if !w.prover.TF32 {
		return 1
	}
	same := map[*Tensor]bool{t: true}
	for _, n := range r.Nodes {
		reads := slices.ContainsFunc(n.In[:min(2, len(n.In))], func(o Operand) bool { return same[o.Tensor] })
		switch {
		case reads && n.Kind == Product:
			return 1 << 12
		case reads && n.Kind == Join:
			same[n.Out[0]] = true
		}
	}
	return 1
}

// move puts noise into a tensor of a region: those who read it from now on read the moved one.
func (w *proofWriter) move(r *Region, t *Tensor, units int) {
	n := Noise{Units: units, Every: 1}
	if t.Type == onnxpb.TensorProto_BFLOAT16 && r.Work.RoundsAsNodes() {
		n.Every = Seldom
	}
	to := &Tensor{Name: t.Name + "~noisy", Type: t.Type, Shape: w.find(t).shape}
	w.call(w.prover.Noise(t, to, n))
	w.stored[t] = w.stored[to]
}

// moves reports whether a proof moves the numbers of a tensor.
func moves(t *Tensor) bool { return isFloat(t.Type) || isDouble(t.Type) }

// roundings is how far the roundings of a node move its result, in units of its last place. Nodes in f64 add up terms
// that are all alike one after another, with the same rounding each time.
func (n *Node) roundings() int {
	switch t := n.Out[0].Type; {
	case isDouble(t) && (n.sums() || n.Kind == Cumulation):
		return n.Terms()
	case n.sums() && t == onnxpb.TensorProto_FLOAT:
		return walk(n.Terms())
	}
	return 1
}

// exactness is what a node does to the digits of numbers.
func (n *Node) exactness() operators.Exactness {
	switch {
	case n.Kind == Elementwise:
		return operators.Table[n.Op].Exactness
	case n.Kind == Product:
		return operators.Rounded
	case n.Op == "sum" || n.Kind == Cumulation:
		return operators.Counted
	}
	return operators.Selected // max, min, and those of Join
}

// exactTensors are those of small integers, which are computed without a rounding: lengths, masks and counts.
func exactTensors(g *Graph) map[*Tensor]bool {
	exact := map[*Tensor]bool{}
	whole := func(o Operand) bool {
		t := o.Tensor
		if t == nil || exact[t] || !isFloating(t.Type) {
			return true
		}
		broken := func(x float64) bool { return x != float64(int64(x)) }
		return t.Constant && t.Data != nil && !slices.ContainsFunc(t.Data, broken)
	}
	for _, n := range g.Nodes {
		t := n.Out[0]
		if t == nil || !isFloating(t.Type) || n.Kind == Opaque || n.Kind == Product {
			continue
		}
		if exactOf(n, t.Type) && !slices.ContainsFunc(n.In, func(o Operand) bool { return !whole(o) }) {
			exact[t] = true
		}
	}
	return exact
}

// exactOf reports whether a node computes integers from integers. In bf16, sums of integers are rounded.
func exactOf(n *Node, t shapes.Type) bool {
	e := n.exactness()
	return e > operators.Counted || e == operators.Counted && (t == onnxpb.TensorProto_FLOAT || isDouble(t))
}
