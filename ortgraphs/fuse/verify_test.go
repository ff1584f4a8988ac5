package fuse

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// VerifiedPartition is Partition after some other passes, and verifies the graph before and after each pass.
func VerifiedPartition(g *Graph, first ...pass) ([]*Region, error) {
	p, holds := &partition{graph: g}, ordered
	if err := p.verify(holds); err != nil {
		return nil, fmt.Errorf("after Lower: %w", err)
	}
	for _, x := range slices.Concat(first, passes) {
		if lacks := x.needs &^ holds; lacks != 0 {
			return nil, fmt.Errorf("%s needs the facts %b", x.name, lacks)
		}
		x.run(p)
		holds = holds&^x.ends | x.leaves
		if err := p.verify(holds); err != nil {
			return nil, fmt.Errorf("after %s: %w", x.name, err)
		}
	}
	return p.regions(), nil
}

// verify says what is wrong with a graph of which facts hold.
func (p *partition) verify(holds fact) error {
	g, at, uses := p.graph, map[*Node]int{}, p.graph.uses()
	made := map[*Tensor]bool{}
	for i, n := range g.Nodes {
		at[n] = i
		for _, t := range n.Out {
			switch {
			case t == nil && n.Kind == Opaque:
			case t == nil || len(n.Out) > 1 && n.Kind != Opaque:
				return fmt.Errorf("%s has %d results", n.Op, len(n.Out))
			case made[t] || t.From != n:
				return fmt.Errorf("%s has more than one writer, or another one than it says", t.Name)
			default:
				made[t] = true
			}
		}
	}
	for i, n := range g.Nodes {
		name := n.Op
		if n.Out[0] != nil {
			name = n.Out[0].Name + " (" + n.Op + ")"
		}
		for _, o := range n.In {
			if o.Tensor == nil {
				if n.Kind != Opaque {
					return fmt.Errorf("%s lacks an operand", name)
				}
				continue
			}
			if err := o.verify(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			from, known := o.Tensor.From, slices.Contains(g.Inputs, o.Tensor) || o.Tensor.Constant
			if before, here := at[from]; from == nil && !known ||
				from != nil && holds&ordered != 0 && (!here || before >= i) {
				return fmt.Errorf("%s reads %s, which is not computed before", name, o.Tensor.Name)
			}
		}
		if err := n.verify(uses); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if holds&ordered != 0 && holds&(repeated|inlined) != 0 && !p.needed(n, uses) {
			return fmt.Errorf("nothing needs %s", name)
		}
	}
	for _, o := range g.Outputs {
		if t := o.Tensor; product(o.Shape) != t.Elements() || t.From != nil && !made[t] {
			return fmt.Errorf("the output %s of %v is %s of %v", o.Name, o.Shape, t.Name, t.Shape)
		}
	}
	if holds&laidOut != 0 {
		for _, n := range g.Nodes {
			if n.is(Product) && (!n.In[0].Reshaped() || !n.In[1].Reshaped()) {
				return fmt.Errorf("an operand of %s has another order than in memory", n.Out[0].Name)
			}
		}
	}
	if holds&grouped != 0 && holds&ordered != 0 {
		return p.verifyGroups(uses)
	}
	return nil
}

// needed reports whether an output or another node reads a result.
func (p *partition) needed(n *Node, uses map[*Tensor][]use) bool {
	return slices.ContainsFunc(n.Out, func(t *Tensor) bool {
		return t != nil && (len(uses[t]) > 0 || t.From.Op == Reach ||
			slices.ContainsFunc(p.graph.Outputs, func(o Output) bool { return o.Tensor == t }))
	})
}

// verifyGroups checks that each group keeps a turn after those whose results it reads: searches for detours rely on it.
func (p *partition) verifyGroups(uses map[*Tensor][]use) error {
	for _, n := range p.graph.Nodes {
		if n.group == nil || !slices.Contains(n.group.nodes, n) || p.order[n.group.turn] != n.group {
			return fmt.Errorf("%s is not computed at its turn", n.Op)
		}
		for i, o := range n.In {
			t := o.Tensor
			if t == nil {
				continue
			}
			if from := t.From; from != nil && from.group != n.group && from.group.turn >= n.group.turn {
				return fmt.Errorf("%s, at turn %d, reads %s of turn %d", n.Op, n.group.turn, t.Name, from.group.turn)
			}
			if n.Op != Reach && !slices.Contains(p.uses[t], use{n, i}) || len(p.uses[t]) > len(uses[t]) {
				return fmt.Errorf("the readers of %s are not those that are known", t.Name)
			}
		}
	}
	return nil
}

// verify checks that each view shows what the one before has.
func (o Operand) verify() error {
	t, shape := o.Tensor, o.Tensor.Shape
	if t.Data != nil && len(t.Data) != t.Elements() {
		return fmt.Errorf("%s has %d numbers for %v", t.Name, len(t.Data), shape)
	}
	for _, v := range o.Views {
		ok := slices.Equal(v.From, shape)
		switch v.Op {
		case Reshape:
			ok = ok && product(v.From) == product(v.To)
		case Transpose:
			ok = ok && len(v.Perm) == len(shape) && slices.Equal(permuted(shape, v.Perm), v.To) &&
				slices.Equal(inverse(inverse(v.Perm)), v.Perm)
		case Expand:
			ok = ok && broadcasts(shape, v.To)
		case Slice:
			rest := slices.Clone(v.To)
			rest[v.Axis] = shape[v.Axis]
			last := v.Start + v.Step*(v.To[v.Axis]-1)
			ok = ok && slices.Equal(rest, shape) &&
				(v.To[v.Axis] == 0 || min(v.Start, last) >= 0 && max(v.Start, last) < shape[v.Axis])
		}
		if !ok {
			return fmt.Errorf("%s of %v is seen through %+v", t.Name, shape, v)
		}
		shape = v.To
	}
	return nil
}

// broadcasts reports whether a shape is broadcast to another one.
func broadcasts(from, to []int) bool {
	added := len(to) - len(from)
	for i, d := range from {
		if added < 0 || d != 1 && d != to[i+added] {
			return false
		}
	}
	return true
}

// verify checks shapes, types and the role of a node.
func (n *Node) verify(uses map[*Tensor][]use) error {
	if n.Kind == Opaque {
		return nil
	}
	t := n.Out[0]
	if want := n.shape(); !slices.Equal(want, t.Shape) {
		return fmt.Errorf("a result of %v, not %v", t.Shape, want)
	}
	o := operators.Table[n.Op]
	for i, x := range n.In {
		same := x.Tensor.Type == n.In[len(n.In)-1].Tensor.Type
		switch {
		case n.Kind == Elementwise && o == nil:
			return fmt.Errorf("no row of the table of operators")
		case n.Op == "Cast" || n.Op == Reach || n.Op == "Depthwise":
			same = true
		case n.Op == "Where" && i == 0:
			same = x.Tensor.Type == onnxpb.TensorProto_BOOL
		case n.Kind != Elementwise || o.Result != operators.Boolean:
			same = same && x.Tensor.Type == t.Type
		}
		if !same || n.Kind == Elementwise && o.Result == operators.Boolean && t.Type != onnxpb.TensorProto_BOOL {
			return fmt.Errorf("a result of type %v of operands of types %v, ...", t.Type, x.Tensor.Type)
		}
	}
	role := true
	switch n.work.(type) {
	case Biases:
		role = isBias(Operand{Tensor: t}) && n.Op == "Cast"
	case *Products: // a product, or its activation
		from := n.In[0].Tensor.From
		role = n.Kind == Product && t.Type == onnxpb.TensorProto_BFLOAT16 ||
			n.Op == "GeluTanh" && from != nil && from.adds()
	}
	if n.Inline {
		role = role && n.fusible() && len(uses[t]) == 1
	}
	if !role {
		return fmt.Errorf("set apart for %T, inline %t", n.work, n.Inline)
	}
	return nil
}

// shape is the shape of a result, by those of the operands.
func (n *Node) shape() (shape []int) {
	x := slices.Clone(n.In[0].Shape())
	switch {
	case n.Kind == Elementwise:
		for _, o := range n.In {
			s := o.Shape()
			for len(shape) < len(s) {
				shape = slices.Insert(shape, 0, 1)
			}
			for i, d := range s {
				if at := i + len(shape) - len(s); d != 1 && shape[at] == 1 {
					shape[at] = d
				} else if d != 1 && d != shape[at] {
					return nil
				}
			}
		}
		if !slices.Equal(shape, n.Out[0].Shape) && broadcasts(shape, n.Out[0].Shape) { // what Expand is part of
			return n.Out[0].Shape
		}
		return slices.Concat([]int{}, shape)
	case n.Kind == Convolved:
		return n.Convolution.shape()
	case n.Kind == Reduction:
		for _, a := range n.Axes {
			x[a] = 1
		}
		return x
	case n.Op == Affine || n.Op == LogAddExp:
		return n.passed()
	case n.Kind == Cumulation:
		return x
	case n.Op == "Windows":
		x = slices.Clone(n.Part(0).Shape())
		x[n.Axes[0]] *= n.Windows.Parts
		return x
	case n.Op == "Concat":
		x[n.Axes[0]] = 0
		for _, o := range n.In {
			x[n.Axes[0]] += o.Shape()[n.Axes[0]]
		}
		return x
	case n.Op == "Pad":
		for i, d := range n.Out[0].Shape {
			x[i] = max(d, x[i]+n.Pads[i])
		}
		return x
	}
	return n.productShape()
}

// passed is the shape of the result of a Cumulation that begins with its last operand.
func (n *Node) passed() []int {
	last, first := len(n.In)-1, slices.Clone(n.Out[0].Shape)
	first[n.Axes[0]] = 1
	if !slices.Equal(n.In[last].Shape(), first) || n.Op == Affine != (last == 2) {
		return nil
	}
	for _, o := range n.In[:last] {
		if !slices.Equal(o.Shape(), n.Out[0].Shape) && !broadcasts(o.Shape(), n.Out[0].Shape) {
			return nil
		}
	}
	return n.Out[0].Shape
}

func (n *Node) productShape() []int {
	x, y := slices.Clone(n.In[0].Shape()), slices.Clone(n.In[1].Shape())
	for i, s := range [][]int{x, y} {
		if r := len(s); n.Transposed[i] {
			s[r-1], s[r-2] = s[r-2], s[r-1]
		}
	}
	if x[len(x)-1] != y[len(y)-2] {
		return nil
	}
	rows, columns := x[len(x)-2], y[len(y)-1]
	x, y = x[:len(x)-2], y[:len(y)-2]
	if len(x) < len(y) {
		x, y = y, x
	}
	for i, d := range y {
		if at := i + len(x) - len(y); x[at] == 1 {
			x[at] = d
		} else if d != 1 && d != x[at] {
			return nil
		}
	}
	shape := append(slices.Clone(x), rows, columns)
	for i, o := range n.In[2:] {
		bias := i == 0 && slices.Equal(o.Shape(), []int{columns})
		if !bias && !slices.Equal(o.Shape(), shape) {
			return nil
		}
	}
	return shape
}
