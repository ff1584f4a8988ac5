package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// scan lowers a Scan whose steps need not run one after another: what it passes on is known of all steps at once, as
// Cumulations and sums, and then each node of the step computes all steps in one node. It returns false if the step has
// nodes that are not elementwise, reductions or Cumulations, or passes on something else.
func (l *lowering) scan(n *shapes.Node) bool {
	c := stepOf(n)
	if c == nil || slices.ContainsFunc(c.Step.Nodes, func(n *Node) bool {
		return n.Kind != Elementwise && n.Kind != Reduction && n.Kind != Cumulation
	}) {
		return false
	}
	s := &liftedScan{lowering: l, Recurrence: c, of: map[*Tensor]lifted{}, needs: c.needs()}
	s.reverse = c.Backwards[0]
	for i, v := range n.Reads() {
		o := l.operand(v)
		if j := i - c.Carries; j >= 0 && j < c.Sequences {
			s.of[c.Step.Inputs[i]] = lifted{s.flipped(o, c.Backwards[j]), true}
			continue
		}
		if i < c.Carries {
			s.first = append(s.first, o)
			continue
		}
		s.of[c.Step.Inputs[i]] = lifted{o, false}
	}
	before := len(l.graph.Nodes)
	if !s.carries() {
		l.graph.Nodes = l.graph.Nodes[:before]
		return false
	}
	for i, v := range n.Out {
		l.operands[v] = s.result(i)
	}
	return true
}

// liftedScan is a Scan of which each node computes all steps. The steps are in the order of memory.
type liftedScan struct {
	*lowering
	*Recurrence
	reverse bool      // the last one in memory is the first step
	first   []Operand // what the first step gets
	last    []Operand // what the last one passes on, where no step needs it
	of      map[*Tensor]lifted
	needs   map[*Tensor]uint64 // the passed values, as bits, that a tensor of the step depends on
}

// lifted is a tensor of the step in all steps: along a new first axis, or the same in all.
type lifted struct {
	Operand
	along bool
}

// item is the shape in a step.
func (x lifted) item() []int {
	if x.along {
		return x.Shape()[1:]
	}
	return x.Shape()
}

// maxCarries is the number of bits of needs.
const maxCarries = 64

// needs finds the passed values that each tensor of the step depends on.
func (c *Recurrence) needs() map[*Tensor]uint64 {
	needs := map[*Tensor]uint64{}
	for i := range min(c.Carries, maxCarries) {
		needs[c.Step.Inputs[i]] = 1 << i
	}
	for _, n := range c.Step.Nodes {
		for _, o := range n.In {
			needs[n.Out[0]] |= needs[o.Tensor]
		}
	}
	return needs
}

// flipped returns a sequence in the order of the steps in memory.
func (s *liftedScan) flipped(o Operand, backwards bool) Operand {
	if backwards == s.reverse || s.Steps == 1 {
		return o
	}
	return o.view(View{Op: Slice, Start: s.Steps - 1, Step: -1, To: o.Shape()})
}

// carries finds what each step is passed, one value after another that needs only those which are known.
func (s *liftedScan) carries() bool {
	if s.Carries > maxCarries {
		return false
	}
	s.last = make([]Operand, s.Carries)
	var known uint64
	for known != 1<<s.Carries-1 {
		before := known
		for i := range s.Carries {
			own := uint64(1) << i
			if known&own == 0 && s.needs[s.Step.Outputs[i].Tensor]&^(known|own) == 0 && s.carry(i) {
				known |= own
			}
		}
		if known == before {
			return false
		}
	}
	return true
}

// carry finds what each step is passed of one value.
func (s *liftedScan) carry(i int) bool {
	t, next, first := s.Step.Inputs[i], s.Step.Outputs[i].Tensor, s.first[i]
	if s.Steps == 1 {
		s.of[t] = lifted{first.view(View{Op: Reshape, To: append([]int{1}, t.Shape...)}), true}
		return true
	}
	if t.Elements() == 0 || !slices.Equal(next.Shape, t.Shape) {
		return false
	}
	if x, ok := s.logarithmic(i); ok {
		return s.cumulation(t, LogAddExp, first, s.operand(x, len(t.Shape)))
	}
	forms := &linear{liftedScan: s, carry: t, forms: map[*Tensor]form{}}
	f, ok := forms.of(next)
	switch {
	case !ok || forms.wrong:
		return false
	case f.slope.is(1) && f.rest.is(0):
		s.of[t] = lifted{first, false}
		return true
	case f.slope.is(1):
		return s.sums(i, f.rest)
	}
	return s.cumulation(t, Affine, first, s.padded(f.slope, len(t.Shape)), s.padded(f.rest, len(t.Shape)))
}

// cumulation finds what each step is passed as a Cumulation.
func (s *liftedScan) cumulation(t *Tensor, op string, first Operand, in ...lifted) bool {
	n := &Node{Kind: Cumulation, Op: op, Axes: []int{0}, Exclusive: true, Reverse: s.reverse}
	for _, x := range in {
		n.In = append(n.In, x.Operand)
	}
	if t.Type != onnxpb.TensorProto_FLOAT && !isDouble(t.Type) || constant(n.In...) {
		return false
	}
	n.In = append(n.In, first.view(View{Op: Reshape, To: append([]int{1}, t.Shape...)}))
	s.of[t] = lifted{s.add(n, t.Name+"/steps", t.Type, append([]int{s.Steps}, t.Shape...)), true}
	return true
}

// constant reports whether operands are constants: a kernel that reads nothing cannot be launched.
func constant(list ...Operand) bool {
	return !slices.ContainsFunc(list, func(o Operand) bool { return !o.Tensor.Constant })
}

// sums finds what each step is passed if each adds x: sums up to each step, or of all of them if none is read.
func (s *liftedScan) sums(i int, x lifted) bool {
	t, next, first := s.Step.Inputs[i], s.Step.Outputs[i].Tensor, s.first[i]
	if t.Type == onnxpb.TensorProto_BFLOAT16 || !slices.Contains(cumulable, t.Type) || constant(x.Operand) {
		return false
	}
	if !x.along {
		x = s.repeated(x)
	}
	if !s.read(i) {
		total := s.reduce("sum", next.Name+"/sum", x.Operand, 0).view(View{Op: Reshape, To: x.item()})
		s.last[i] = s.elementwise("Add", next.Name, t.Type, t.Shape, first, total)
		return true
	}
	n := &Node{
		Kind: Cumulation, Op: "CumSum", In: []Operand{x.Operand}, Axes: []int{0}, Exclusive: true, Reverse: s.reverse,
	}
	y := lifted{s.add(n, t.Name+"/sums", t.Type, x.Shape()), true}
	if !(lifted{first, false}).is(0) || !slices.Equal(x.item(), t.Shape) {
		shape := append([]int{s.Steps}, t.Shape...)
		y.Operand = s.elementwise("Add", t.Name+"/steps", t.Type, shape, first, s.padded(y, len(t.Shape)).Operand)
	}
	s.of[t] = y
	return true
}

// read reports whether anything but the value itself needs what a step is passed.
func (s *liftedScan) read(i int) bool {
	for j, o := range s.Step.Outputs {
		if j != i && s.needs[o.Tensor]&(1<<i) != 0 {
			return true
		}
	}
	return false
}

// repeated is what is the same in all steps, along them.
func (s *liftedScan) repeated(x lifted) lifted {
	one, all := append([]int{1}, x.item()...), append([]int{s.Steps}, x.item()...)
	o := x.view(View{Op: Reshape, To: one})
	if s.Steps > 1 {
		o = o.view(View{Op: Expand, To: all})
	}
	return lifted{o, true}
}

// result is an output of the Scan.
func (s *liftedScan) result(i int) Operand {
	o := s.Step.Outputs[i]
	if i < s.Carries && s.last[i].Tensor != nil {
		return s.last[i]
	}
	x := s.value(o.Tensor)
	if i >= s.Carries {
		if !x.along {
			x = s.repeated(x)
		}
		return s.flipped(x.Operand, s.BackwardsOut[i-s.Carries]).view(
			View{Op: Reshape, To: append([]int{s.Steps}, o.Shape...)})
	}
	if x.along {
		end := s.Steps - 1
		if s.reverse {
			end = 0
		}
		x.Operand = cut(x.Operand, 0, end, 1, 1)
	}
	return x.view(View{Op: Reshape, To: o.Shape})
}

// value returns a tensor of the step in all steps, and adds the nodes that it needs.
func (s *liftedScan) value(t *Tensor) lifted {
	if x, ok := s.of[t]; ok {
		return x
	}
	x := lifted{Operand{Tensor: t}, false}
	if n := t.From; n != nil { // otherwise it is a constant
		x = s.node(n)
	}
	s.of[t] = x
	return x
}

// node adds a node of the step for all steps, or for each of them if it is the same.
func (s *liftedScan) node(n *Node) lifted {
	own, t := *n, n.Out[0]
	own.In = nil
	along := false
	rank := len(n.domain())
	var in []lifted
	for _, o := range n.In {
		x := s.operand(o, rank)
		in, along = append(in, x), along || x.along
	}
	if last := len(in) - 1; along && n.Kind == Cumulation && !in[last].along {
		in[last] = s.repeated(in[last]) // what it begins with is not broadcast
	}
	for _, x := range in {
		own.In = append(own.In, x.Operand)
	}
	shape := t.Shape
	if along {
		shape = append([]int{s.Steps}, shape...)
		own.Axes = slices.Clone(n.Axes)
		for i := range own.Axes {
			own.Axes[i]++
		}
	}
	return lifted{s.add(&own, t.Name, t.Type, shape), along}
}

// operand returns an operand of a node of the step in all steps. Its dimensions are those of rank in a step, so that it
// is broadcast as in the step.
func (s *liftedScan) operand(o Operand, rank int) lifted {
	x := s.value(o.Tensor)
	if !x.along {
		return lifted{x.through(o.Views), false}
	}
	for _, v := range o.Views {
		up := View{Op: v.Op, Start: v.Start, Step: v.Step, Axis: v.Axis + 1, To: append([]int{s.Steps}, v.To...)}
		switch v.Op {
		case Transpose:
			up.Perm = []int{0}
			for _, p := range v.Perm {
				up.Perm = append(up.Perm, p+1)
			}
		case Expand:
			x = s.padded(x, len(v.To))
		}
		if v.Op != Slice {
			up.Axis = 0
		}
		x.Operand = x.view(up)
	}
	return s.padded(x, rank)
}

// padded gives a tensor as many dimensions in a step.
func (s *liftedScan) padded(x lifted, rank int) lifted {
	item := x.item()
	if missing := rank - len(item); x.along && missing > 0 {
		to := append([]int{s.Steps}, slices.Repeat([]int{1}, missing)...)
		x.Operand = x.view(View{Op: Reshape, To: append(to, item...)})
	}
	return x
}
