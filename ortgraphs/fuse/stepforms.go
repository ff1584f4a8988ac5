package fuse

import (
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// Operations of a Cumulation whose steps are associative if one looks at pairs of numbers. Affine is slope * x + rest
// of what is passed on, x: the steps from one to another are one more function of this form. LogAddExp is log(exp(x) +
// exp(y)) of x and an item y: the sum of steps is its largest number, and the sum of exponentials of what the others
// are below it.
const (
	Affine    = "Affine"
	LogAddExp = "LogAddExp"
)

// form is slope * x + rest of a value x that steps pass on.
type form struct{ slope, rest lifted }

// is reports whether it is a number, the same everywhere.
func (x lifted) is(number float64) bool {
	c, ok := small(x.Operand)
	return ok && c == number
}

// linear finds the forms of the tensors of a step that depend on a passed value, and adds the nodes of slope and rest.
// All of them have the shape of the value, so each element is passed on to the same one.
type linear struct {
	*liftedScan
	carry *Tensor
	forms map[*Tensor]form
	wrong bool // a number in a form is not what the steps compute, as they round or wrap
}

func (f *linear) number(x float64) lifted { return lifted{scalar(x, f.carry.Type), false} }

// of returns the form of a tensor.
func (f *linear) of(t *Tensor) (form, bool) {
	if x, ok := f.forms[t]; ok {
		return x, true
	}
	x, ok := f.find(t)
	if ok {
		f.forms[t] = x
	}
	return x, ok
}

func (f *linear) find(t *Tensor) (form, bool) {
	switch n := t.From; {
	case t == f.carry:
		return form{f.number(1), f.number(0)}, true
	case !f.depends(t):
		return form{f.number(0), f.value(t)}, true
	case n.Kind == Elementwise && slices.Equal(t.Shape, f.carry.Shape) && t.Type == f.carry.Type:
		return f.node(n)
	}
	return form{}, false
}

// depends reports whether a tensor of the step depends on the passed value.
func (f *linear) depends(t *Tensor) bool { return f.needs[t]&f.needs[f.carry] != 0 }

// real reports whether the value stands for a real number. Steps in integers, and in bf16, compute others.
func (f *linear) real() bool {
	return f.carry.Type == onnxpb.TensorProto_FLOAT || isDouble(f.carry.Type)
}

// node returns the form of a node that depends on the passed value.
func (f *linear) node(n *Node) (form, bool) {
	var in []form
	var apart []bool // operands that do not depend on it
	for _, o := range n.In {
		if !f.depends(o.Tensor) {
			in, apart = append(in, form{f.number(0), f.operand(o, len(n.Out[0].Shape))}), append(apart, true)
			continue
		}
		x, ok := f.of(o.Tensor)
		if !ok || !o.Plain() {
			return form{}, false
		}
		in, apart = append(in, x), append(apart, false)
	}
	both := func(op func(a, b lifted) lifted) form {
		return form{op(in[0].slope, in[1].slope), op(in[0].rest, in[1].rest)}
	}
	switch n.Op {
	case "Copy":
		return in[0], true
	case "Neg":
		return form{f.subtract(f.number(0), in[0].slope), f.subtract(f.number(0), in[0].rest)}, true
	case "Add":
		return both(f.plus), true
	case "Sub":
		return both(f.subtract), true
	case "Mul":
		if apart[0] {
			in, apart = []form{in[1], in[0]}, []bool{false, true}
		}
		return form{f.times(in[0].slope, in[1].rest), f.times(in[0].rest, in[1].rest)}, apart[1]
	case "Div":
		return form{f.over(in[0].slope, in[1].rest), f.over(in[0].rest, in[1].rest)}, apart[1] && f.real()
	case "Where":
		if !apart[0] {
			return form{}, false
		}
		condition := in[0].rest
		return form{f.where(condition, in[1].slope, in[2].slope), f.where(condition, in[1].rest, in[2].rest)}, true
	}
	return form{}, false
}

func (f *linear) plus(a, b lifted) lifted {
	switch {
	case a.is(0):
		return b
	case b.is(0):
		return a
	}
	return f.compute("Add", a, b)
}

func (f *linear) subtract(a, b lifted) lifted {
	switch {
	case b.is(0):
		return a
	case a.is(0):
		return f.compute("Neg", b)
	}
	return f.compute("Sub", a, b)
}

func (f *linear) times(a, b lifted) lifted {
	switch {
	case a.is(0) || b.is(1):
		return a
	case a.is(1):
		return b
	}
	return f.compute("Mul", a, b)
}

func (f *linear) over(a, b lifted) lifted {
	if a.is(0) || b.is(1) {
		return a
	}
	return f.compute("Div", a, b)
}

func (f *linear) where(condition, a, b lifted) lifted {
	if x, ok := small(a.Operand); ok && b.is(x) {
		return a
	}
	return f.compute("Where", condition, a, b)
}

// compute adds an elementwise node of what all steps have. That of numbers is a number.
func (f *linear) compute(op string, in ...lifted) lifted {
	var item []int
	var numbers []float64
	along := false
	for _, x := range in {
		item, along = broadcast(item, x.item()), along || x.along
		if c, ok := small(x.Operand); ok {
			numbers = append(numbers, c)
		}
	}
	if len(numbers) == len(in) {
		y := operators.Table[op].Of(numbers)
		f.wrong = f.wrong || !f.real() && slices.ContainsFunc(append(numbers, y), func(x float64) bool {
			return x != math.Trunc(x) || math.Abs(x) > math.MaxInt32
		})
		return f.number(y)
	}
	var operands []Operand
	for _, x := range in {
		operands = append(operands, f.padded(x, len(item)).Operand)
	}
	shape := item
	if along {
		shape = append([]int{f.Steps}, item...)
	}
	return lifted{f.elementwise(op, f.carry.Name+"/"+op, f.carry.Type, shape, operands...), along}
}

// broadcast returns the shape to which two shapes are broadcast.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	to := slices.Clone(a)
	if to == nil {
		to = []int{}
	}
	for i, d := range b {
		if at := i + len(a) - len(b); to[at] == 1 {
			to[at] = d
		}
	}
	return to
}

// logarithmic returns the item y if a step passes log(exp(x) + exp(y)) on, of what it is passed, x: as the larger one
// plus log(1 + exp(-|x - y|)), where the difference of equal ones, which may be infinite, can be 0.
func (s *liftedScan) logarithmic(i int) (y Operand, ok bool) {
	x, sum := s.Step.Inputs[i], s.Step.Outputs[i].Tensor.From
	if sum == nil || sum.Op != "Add" || !slices.Equal(sum.Out[0].Shape, x.Shape) {
		return y, false
	}
	for at := range 2 {
		larger, rest := sum.by(at, "Max"), sum.by(1-at, "Log", "Softplus")
		if larger == nil || rest == nil || len(larger.In) != 2 {
			continue
		}
		own := slices.IndexFunc(larger.In, func(o Operand) bool { return o.Tensor == x && o.Plain() })
		if own < 0 {
			continue
		}
		y = larger.In[1-own]
		if s.needs[y.Tensor]&(1<<i) == 0 && s.ofDifference(rest, x, y) {
			return y, true
		}
	}
	return y, false
}

// by returns the node that computes an operand, if it is one of those operators and there are no views.
func (n *Node) by(operand int, ops ...string) *Node {
	o := n.In[operand]
	if from := o.Tensor.From; from != nil && o.Plain() && from.Kind == Elementwise && slices.Contains(ops, from.Op) {
		return from
	}
	return nil
}

// ofDifference reports whether a node is log(1 + exp(-|x - y|)).
func (s *liftedScan) ofDifference(n *Node, x *Tensor, y Operand) bool {
	if n.Op == "Log" {
		sum := n.by(0, "Add")
		if sum == nil {
			return false
		}
		one, power := sum.In[0], sum.by(1, "Exp")
		if power == nil {
			one, power = sum.In[1], sum.by(0, "Exp")
		}
		if power == nil || !s.constant(one, 1) {
			return false
		}
		n = power
	}
	negative := n.by(0, "Neg")
	if negative == nil {
		return false
	}
	distance := negative.by(0, "Abs")
	if distance == nil {
		return false
	}
	pair := func(n *Node) bool {
		is := func(o Operand, t Operand) bool { return o.Tensor == t.Tensor && sameViews(o.Views, t.Views) }
		own := Operand{Tensor: x}
		return is(n.In[0], own) && is(n.In[1], y) || is(n.In[0], y) && is(n.In[1], own)
	}
	if apart := distance.by(0, "Where"); apart != nil {
		same, difference := apart.by(0, "Equal"), apart.by(2, "Sub")
		return same != nil && difference != nil && s.constant(apart.In[1], 0) && pair(same) && pair(difference)
	}
	difference := distance.by(0, "Sub")
	return difference != nil && pair(difference)
}

// constant reports whether an operand of a step is a number, the same everywhere and in all steps.
func (s *liftedScan) constant(o Operand, number float64) bool {
	x, ok := s.of[o.Tensor]
	if !ok {
		x.Operand = o
	}
	return x.is(number)
}
