package fuse

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Limits of the convolutions that a library computes.
const (
	// windowBytes is the size of windows in memory from which on a convolution is faster without them: on an H200, as
	// docs/results/history-fusion.md has it, 512 channels with 3 taps are, and 256 channels are not.
	windowBytes = 16 << 20
	// channelAlignment divides the channels of a group. With one channel, a library takes as long as with 64.
	channelAlignment = 8
)

// findConvolutions finds products of windows, and the sums of parts that are their gradients, which a library computes
// as a convolution: without windows in memory. The windows must be large.
func findConvolutions(g *Graph) {
	f := &convolutionFinder{
		graph: g, uses: g.uses(), outputs: g.outputs(), before: map[*Node][]*Node{}, casts: map[*Tensor][]*Node{},
	}
	for _, n := range slices.Clone(g.Nodes) {
		if w := f.windows(n); w != nil && f.complete(w) && f.accepted(w) {
			f.rewrite(w)
		}
	}
	if len(f.before) == 0 {
		return
	}
	g.insert(f.before)
	g.Nodes = reachable(g)
}

type convolutionFinder struct {
	graph   *Graph
	uses    map[*Tensor][]use
	outputs map[*Tensor]bool
	before  map[*Node][]*Node   // new nodes, by the one that follows them
	casts   map[*Tensor][]*Node // of what is convolved to another type
}

// windowed is a tensor of windows, and what reads it.
type windowed struct {
	Convolution
	tensor  *Tensor
	x       Operand       // without the zeros around it
	levels  []windowLevel // the last Concat first
	grouped bool          // the first dimension is that of the groups
	// The products that read the windows, and that of which the parts are the gradient of x, or nil.
	forward, weights []use
	input            *Node
	dy               Operand
	dx               []*Tensor // the sum of the parts, and casts of it
	cut              []View    // what all their readers see first of them
}

// windowLevel is a Concat of windows, and the zeros around what it reads.
type windowLevel struct {
	Windows
	shape     []int // of what it reads
	positions int   // of the result, along the axis
	inner     []int // shape without zeros
	pads      []int // before
}

// windows returns the windows that a node joins, as far as they are those of a convolution; nil if they are not.
func (f *convolutionFinder) windows(n *Node) *windowed {
	t := n.Out[0]
	least := cmp.Or(f.graph.WindowBytes, windowBytes)
	if !n.is(Join) || !isFloat(t.Type) || t.Bytes() < least || f.outputs[t] {
		return nil
	}
	w := &windowed{tensor: t, Convolution: Convolution{ConvolutionForm: ConvolutionForm{Type: t.Type}}}
	for at := t; ; {
		l, x, ok := levelOf(at)
		if !ok {
			break
		}
		w.levels, w.x = append(w.levels, l), x
		if !x.Plain() || x.Tensor.From == nil {
			break
		}
		at = x.Tensor
	}
	if len(w.levels) == 0 || !f.products(w) || !w.sizes() {
		return nil
	}
	return w
}

// levelOf returns the windows that a tensor is, and what they are of, without zeros around it. Windows in bf16 are of
// what is rounded to it; nothing says how others were rounded before.
func levelOf(t *Tensor) (l windowLevel, x Operand, ok bool) {
	if t.From == nil || len(t.From.Axes) == 0 {
		return l, x, false
	}
	x, w, ok := joinedWindows(t.From, strided)
	if last := len(t.Shape) - 1; !ok || w.Start != 0 || w.Step < 1 || w.Distance < 1 || t.From.Axes[0] != last {
		return l, x, false
	}
	l = windowLevel{Windows: w, shape: x.Shape(), positions: t.Shape[w.Axis]}
	l.inner, l.pads = l.shape, make([]int, len(l.shape))
	cast := func(n *Node) bool {
		return n.Kind == Elementwise && n.Op == "Cast" && isFloat(n.In[0].Tensor.Type) &&
			t.Type == onnxpb.TensorProto_BFLOAT16
	}
	for o := x.uncut(w.Axis); o.Plain() && o.Tensor.From != nil; {
		switch n := o.Tensor.From; {
		case cast(n):
			o = n.In[0]
		case n.Kind == Join && n.Op == "Pad" && n.Fill == 0:
			for i, p := range n.Pads {
				l.pads[i] += p
			}
			o = n.In[0]
			l.inner, x = o.Shape(), o
			if c := o.Tensor.From; o.Plain() && c != nil && cast(c) {
				o = c.In[0]
				x = o
			}
		default:
			return l, x, true
		}
	}
	return l, x, true
}

// products sorts the readers of the windows. It returns false if there is another one, or no product at all.
func (f *convolutionFinder) products(w *windowed) bool {
	t := w.tensor
	for i, u := range f.uses[t] {
		n := u.node
		if !n.is(Product) || n.adds() || f.outputs[n.Out[0]] || n.Out[0].Type != t.Type {
			return false
		}
		rank := len(n.Out[0].Shape)
		if i > 0 && w.grouped != (rank == 3) || n.In[1-u.operand].Tensor == t {
			return false
		}
		if w.grouped = rank == 3; rank != 2 && rank != 3 || w.grouped && n.Out[0].Shape[0] != t.Shape[0] {
			return false
		}
		o, turned, ok := n.turned(u.operand)
		if !ok || !o.Reshaped() || o.Shape()[rank-1] != t.Shape[len(t.Shape)-1] {
			return false
		}
		if turned == (u.operand == 1) { // windows in rows times weights, or weights times windows in columns
			w.forward = append(w.forward, u)
		} else {
			w.weights = append(w.weights, u)
		}
	}
	return len(w.forward)+len(w.weights) > 0
}

// turned is [Node.matrix] for operands of two or three dimensions. ok is false if a transpose is another one.
func (n *Node) turned(i int) (o Operand, transposed, ok bool) {
	o, transposed = n.In[i], n.Transposed[i]
	last := len(o.Views) - 1
	if last < 0 || o.Views[last].Op != Transpose {
		return o, transposed, true
	}
	v := o.Views[last]
	return Operand{o.Tensor, o.Views[:last]}, !transposed, slices.Equal(v.Perm, swapLast(v.From).Perm)
}

// sizes finds those of the convolution.
func (w *windowed) sizes() bool {
	first := 0 // the dimension of the batch
	w.Groups = 1
	if w.grouped {
		first, w.Groups = 1, w.tensor.Shape[0]
	}
	inner := w.levels[len(w.levels)-1].inner
	last := len(inner) - 1
	spatial := last - first - 1
	if len(w.tensor.Shape) != len(inner) || spatial < 1 || spatial > 2 || w.x.Shape() == nil {
		return false
	}
	w.Batch, w.Channels = inner[first], w.Groups*inner[last]
	w.Kernel, w.Stride, w.Dilation = [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}
	for i := range 2 {
		w.Size[i], w.ResultSize[i] = 1, 1
	}
	for i := range spatial {
		w.Size[2-spatial+i], w.ResultSize[2-spatial+i] = inner[first+1+i], w.tensor.Shape[first+1+i]
	}
	return w.taps(func(axis int) (int, bool) { return axis - first - 1 + 2 - spatial, axis > first && axis < last }) &&
		w.channels()
}

// taps adds the levels, the first Concat first.
func (w *windowed) taps(dimension func(axis int) (int, bool)) bool {
	for _, l := range slices.Backward(w.levels) {
		a, ok := dimension(l.Axis)
		if !ok {
			return false
		}
		for i, p := range l.pads {
			if i != l.Axis && (p != 0 || l.shape[i] != l.inner[i]) {
				return false
			}
		}
		switch padded := l.shape[l.Axis] > l.inner[l.Axis]; {
		case w.Kernel[a] == 1:
			w.Dilation[a], w.Before[a] = l.Distance, l.pads[l.Axis]
			w.After[a] = max(0, l.shape[l.Axis]-l.inner[l.Axis]-w.Before[a]) // less than 0: no window reads the last
		case padded || w.Stride[a] != 1 || l.Distance != w.Kernel[a]*w.Dilation[a]: // windows of windows
			return false
		}
		w.Kernel[a] *= l.Parts
		w.Stride[a] = l.Step
	}
	for a := range 2 {
		// With a stride, as many zeros as before, or as few as possible: no window reads the last ones.
		if w.Stride[a] > 1 && w.fits(a, w.Before[a]) {
			w.After[a] = w.Before[a]
		}
		for w.Stride[a] > 1 && w.After[a] > w.Before[a] && w.fits(a, w.After[a]-1) {
			w.After[a]--
		}
		if !w.fits(a, w.After[a]) {
			return false
		}
	}
	return true
}

// fits reports whether there are as many results along an axis if so many zeros are after what is convolved.
func (w *windowed) fits(axis, after int) bool {
	left := w.Size[axis] + w.Before[axis] + after - (w.Kernel[axis]-1)*w.Dilation[axis] - 1
	return left >= 0 && left/w.Stride[axis]+1 == w.ResultSize[axis]
}

// channels finds the channels of the result, and checks that a library computes them well.
func (w *windowed) channels() bool {
	for _, u := range slices.Concat(w.forward, w.weights) {
		shape := u.node.Out[0].Shape
		results := product(shape) / max(1, product(w.tensor.Shape[:len(w.tensor.Shape)-1]))
		if slices.Contains(w.weights, u) {
			results = product(shape) / w.tensor.Shape[len(w.tensor.Shape)-1]
		} else {
			results *= w.Groups
		}
		if w.Results != 0 && w.Results != results {
			return false
		}
		w.Results = results
	}
	return w.Channels/w.Groups%channelAlignment == 0 && w.Results/w.Groups%channelAlignment == 0
}

// complete finds the gradient of the windows, if there is one.
func (f *convolutionFinder) complete(w *windowed) bool {
	if len(w.weights) > 1 {
		return false
	}
	if len(w.weights) == 0 {
		return true
	}
	u := w.weights[0]
	dy, turned, ok := u.node.turned(1 - u.operand)
	if w.dy = dy; !ok || turned != (u.operand == 1) { // dy has its rows in columns
		return false
	}
	for _, u := range f.uses[dy.Tensor] {
		n := u.node
		t := n.Out[0]
		if !n.is(Product) || n.adds() || u.operand != 0 || f.outputs[t] || t.Type != w.Type ||
			t.Elements() != w.tensor.Elements() {
			continue
		}
		o, turned, ok := n.turned(0)
		if terms := w.tensor.Shape[len(w.tensor.Shape)-1]; !ok || turned || !sameViews(o.Views, dy.Views) ||
			t.Shape[len(t.Shape)-1] != terms {
			continue
		}
		if w.dx, w.cut = f.sums(w, t); len(w.dx) > 0 {
			w.input = n
			break
		}
	}
	return true
}

// accepted reports whether the library computes the convolution and the gradient of the weights, as far as they are in
// the graph. If it does not compute the gradient of x, that stays a sum of parts.
func (f *convolutionFinder) accepted(w *windowed) bool {
	refused := func(w *windowed, pass ConvolutionPass) bool {
		form := w.ConvolutionForm
		form.Pass = pass
		return f.graph.Refused[form] != nil
	}
	if w.input != nil && refused(w.ofInput(), OfInput) {
		w.input = nil
	}
	return !(len(w.forward) > 0 && refused(w, Forward) || len(w.weights) > 0 && refused(w, OfWeights))
}

// sums returns the sum of the parts of the windows' gradient at all levels, with its casts, and what its readers see
// first of it, if that leaves out the zeros around x; nil if there is none.
func (f *convolutionFinder) sums(w *windowed, gradient *Tensor) (dx []*Tensor, cut []View) {
	s := &windowSharing{uses: f.uses, outputs: f.outputs}
	from, seen, casts := gradient, []View(nil), []*Tensor(nil)
	for _, l := range w.levels {
		c := &convolution{
			Windows: l.Windows, x: Operand{Tensor: &Tensor{Shape: l.shape}}, positions: l.positions,
			parted: &Node{Out: []*Tensor{from}}, seen: seen, kind: w.Type,
		}
		if len(f.uses[from]) != l.Parts || !isFloat(from.Type) {
			return nil, nil
		}
		if l.Step > 1 {
			if from, seen, casts = s.stridedSum(c, l); from == nil {
				return nil, nil
			}
			continue
		}
		if from = s.sum(c); from == nil {
			return nil, nil
		}
		seen, casts = nil, nil
		if l.shape[l.Axis] > l.inner[l.Axis] && s.readsOnly(from, l.Axis, l.pads[l.Axis], l.inner[l.Axis]) {
			to := slices.Clone(l.shape)
			to[l.Axis] = l.inner[l.Axis]
			seen = []View{{Op: Slice, From: l.shape, To: to, Axis: l.Axis, Start: l.pads[l.Axis], Step: 1}}
		}
	}
	if f.outputs[from] || !isFloat(from.Type) {
		return nil, nil
	}
	return append([]*Tensor{from}, casts...), seen
}
