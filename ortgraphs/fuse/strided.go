package fuse

import "slices"

// A convolution with a stride is exported without one: its input is divided into *phases*, each with the elements of
// one remainder by the stride, and the windows are slices of these. So is the gradient: each phase is a sum of parts,
// and a Concat puts them together.

// strided returns what an operand is a slice of, and which elements it has, as sliced does. It also sees through a
// slice of a phase: then the elements are those of what was divided into phases, in steps of the stride.
func strided(o Operand) (Operand, Windows, bool) {
	n := len(o.Views) - 4
	if n < 0 {
		return sliced(o)
	}
	split, phase, drop, slice := o.Views[n], o.Views[n+1], o.Views[n+2], o.Views[n+3]
	if split.Op != Reshape || phase.Op != Slice || drop.Op != Reshape || slice.Op != Slice || slice.Step != 1 {
		return sliced(o)
	}
	axis, x := slice.Axis, Operand{o.Tensor, o.Views[:n]}
	whole := x.Shape()
	if axis >= len(whole) || len(split.To) != len(whole)+1 || phase.Axis != axis+1 || phase.To[axis+1] != 1 {
		return sliced(o)
	}
	steps, stride := split.To[axis], split.To[axis+1]
	dropped := slices.Clone(whole)
	dropped[axis] = steps
	if whole[axis] != steps*stride || !slices.Equal(drop.To, dropped) ||
		!slices.Equal(split.To, slices.Concat(whole[:axis], []int{steps, stride}, whole[axis+1:])) {
		return sliced(o)
	}
	return x, Windows{Axis: axis, Start: phase.Start + slice.Start*stride, Step: stride}, true
}

// uncut is an operand without a slice that leaves out the end of an axis, and nothing else.
func (o Operand) uncut(axis int) Operand {
	if len(o.Views) == 1 {
		if v := o.Views[0]; v.Op == Slice && v.Axis == axis && v.Start == 0 && v.Step == 1 {
			return Operand{Tensor: o.Tensor}
		}
	}
	return o
}

// stridedSum returns the sum of all parts of the product, each in its place, and what all its readers see first of it:
// what was convolved, without zeros around it; nil if there is none. Casts of it have such readers, too.
func (s *windowSharing) stridedSum(c *convolution, l windowLevel) (sum *Tensor, seen []View, casts []*Tensor) {
	join := s.uses[c.parted.Out[0]][0].node
	for join.Op == "Cast" || join.Op == "Pad" || join.Op == "Add" {
		t := join.Out[0]
		if !s.only(t) {
			return nil, nil, nil
		}
		join = s.uses[t][0].node
	}
	if !s.joinsPhases(c, join, l.shape) {
		return nil, nil, nil
	}
	shape := l.shape
	for sum = join.Out[0]; ; {
		if seen, casts = s.sees(sum, l); seen != nil {
			return sum, seen, casts
		}
		if !s.only(sum) {
			return nil, nil, nil
		}
		n := s.uses[sum][0].node
		whole := n.In[0].Reshaped() && slices.Equal(n.In[0].Shape(), shape)
		switch {
		case n.castsFloat() && (whole || n.In[0].Plain()):
		case whole && n.appends(l.Axis):
			shape = n.Out[0].Shape
		default:
			return nil, nil, nil
		}
		sum = n.Out[0]
	}
}

// appends reports whether a node puts zeros after the last elements of an axis, and nowhere else.
func (n *Node) appends(axis int) bool {
	if n.Kind != Join || n.Op != "Pad" || n.Fill != 0 {
		return false
	}
	for i, d := range n.In[0].Shape() {
		if n.Pads[i] != 0 || i != axis && n.Out[0].Shape[i] != d {
			return false
		}
	}
	return true
}

// joinsPhases reports whether a Concat puts together the phases of x, of a shape, each of which is a sum of parts.
func (s *windowSharing) joinsPhases(c *convolution, join *Node, shape []int) bool {
	if !join.is(Join) || join.Op != "Concat" || len(join.In) != c.Step || shape[c.Axis]%c.Step != 0 ||
		join.Out[0].Elements() != product(shape) {
		return false
	}
	phase := slices.Clone(shape)
	phase[c.Axis] /= c.Step
	if product(join.Out[0].Shape[:join.Axes[0]]) != product(phase[:c.Axis+1]) {
		return false
	}
	var all []int
	for i, o := range join.In {
		of := *c
		of.phase, of.x = i, Operand{Tensor: &Tensor{Shape: phase}}
		if last := len(o.Views) - 1; last >= 0 && o.Views[last].Op == Reshape { // the Concat counts dimensions of 1
			o.Views = o.Views[:last]
		}
		if o.Tensor != c.parted.Out[0] && !(o.Plain() && s.only(o.Tensor)) {
			return false
		}
		parts, ok := s.parts(&of, o)
		if !ok {
			return false
		}
		all = append(all, parts...)
	}
	slices.Sort(all)
	return len(all) == c.Parts && len(slices.Compact(all)) == c.Parts
}

// castsFloat reports whether a node converts f32 to bf16, or back.
func (n *Node) castsFloat() bool {
	return n.Kind == Elementwise && n.Op == "Cast" && isFloat(n.In[0].Tensor.Type) && isFloat(n.Out[0].Type)
}

// sees returns the first views of all readers of a tensor, and of its casts, that show what was convolved at a level;
// nil if one sees something else.
func (s *windowSharing) sees(t *Tensor, l windowLevel) (seen []View, casts []*Tensor) {
	readers := s.uses[t]
	for _, u := range s.uses[t] {
		if o := u.node.In[u.operand]; o.Plain() && u.node.castsFloat() {
			casts = append(casts, u.node.Out[0])
			readers = slices.Concat(readers, s.uses[u.node.Out[0]])
		}
	}
	isCast := func(u use) bool { return slices.Contains(casts, u.node.Out[0]) }
	isOutput := func(t *Tensor) bool { return s.outputs[t] }
	readers = slices.DeleteFunc(slices.Clone(readers), isCast)
	if len(readers) == 0 || s.outputs[t] || slices.ContainsFunc(casts, isOutput) {
		return nil, nil
	}
	seen = l.shows(readers[0].node.In[readers[0].operand].Views)
	for _, u := range readers {
		views := u.node.In[u.operand].Views
		if len(views) < len(seen) || !sameViews(views[:len(seen)], seen) {
			return nil, nil
		}
	}
	return seen, casts
}

// shows returns the first of the views of a tensor that show what was convolved at a level; nil if none do.
func (l *windowLevel) shows(views []View) []View {
	start := 0
	for i, v := range views {
		switch {
		case i == 0 && v.Op == Reshape && slices.Equal(v.To, l.shape):
		case v.Op == Slice && v.Axis == l.Axis && v.Step == 1:
			start += v.Start
		default:
			return nil
		}
		if slices.Equal(v.To, l.inner) && start == l.pads[l.Axis] {
			return views[:i+1]
		}
	}
	return nil
}
