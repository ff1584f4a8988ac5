package fuse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// ConvolutionPass is what a node computes of a convolution y of x and w.
type ConvolutionPass int

const (
	// Forward computes y of x and w.
	Forward ConvolutionPass = iota
	// OfInput computes the gradient of x, of that of y and w.
	OfInput
	// OfWeights computes the gradient of w, of x and that of y.
	OfWeights
)

// ConvolutionForm is the form of a convolution over two dimensions, or of one of its gradients, as a library computes
// it: x is in memory as [Batch, Size, Channels], y as [Batch, ResultSize, Results], w as [Results, Kernel, Channels /
// Groups]. One over one dimension has the size 1 in the first.
type ConvolutionForm struct {
	Pass                                                      ConvolutionPass
	Type                                                      shapes.Type
	Batch, Channels, Results, Groups                          int
	Size, ResultSize, Kernel, Stride, Dilation, Before, After [2]int
}

func (p ConvolutionPass) describe() string {
	return [...]string{"convolution", "gradient of what is convolved", "gradient of a convolution's weights"}[p]
}

// Describe returns what is computed, for messages.
func (f ConvolutionForm) Describe() string {
	return fmt.Sprintf("%s of %v to %v in %v, kernel %v, stride %v, dilation %v, groups %d", f.Pass.describe(),
		[]int{f.Batch, f.Size[0], f.Size[1], f.Channels}, []int{f.Batch, f.ResultSize[0], f.ResultSize[1], f.Results},
		f.Type, f.Kernel, f.Stride, f.Dilation, f.Groups)
}

// Convolution is a convolution, or one of its gradients.
type Convolution struct {
	ConvolutionForm
	// In are what it reads, in the order of the pass.
	In [2]*Tensor

	// plain computes the same as nodes that read the holes in place of In. The last one computes the result.
	plain   []*Node
	holes   [2]*Tensor
	readers [2]use // of In, among the plain nodes
}

// RoundsAsNodes is false for the gradient of x: in bf16, the nodes round the sum after each tap.
func (c *Convolution) RoundsAsNodes() bool { return c.Pass != OfInput }

func (c *Convolution) group(nodes []*Node) [][]*Node { return [][]*Node{nodes} }

func (c *Convolution) complete(r *Region) {
	r.Domain = r.Out[0].Shape
	for i, u := range c.readers {
		c.In[i] = u.node.In[u.operand].Tensor
	}
}

func (c *Convolution) ops(*Region) string {
	return c.Pass.describe()
}

func (c *Convolution) count(l *Ledger, _ *Region) (kernels int) {
	l.Convolutions++
	return 0
}

// shape is that of the result in memory.
func (c *Convolution) shape() []int {
	switch c.Pass {
	case Forward:
		return []int{c.Batch, c.ResultSize[0], c.ResultSize[1], c.Results}
	case OfInput:
		return []int{c.Batch, c.Size[0], c.Size[1], c.Channels}
	}
	return []int{c.Results, c.Kernel[0], c.Kernel[1], c.Channels / c.Groups}
}

// rewrite puts a node in place of each product, and of the sum of the parts.
func (f *convolutionFinder) rewrite(w *windowed) {
	readers := slices.Concat(w.forward, w.weights)
	first := readers[0].node
	x := f.narrow(w, first)
	for _, u := range w.forward {
		weights, turned, _ := u.node.turned(1 - u.operand)
		if turned == (u.operand == 1) { // its rows are the terms of the sum
			weights = weights.view(swapLast(weights.Shape()))
		}
		y := f.add(w, u.node, Forward, u.node.Out[0].Name, [2]Operand{x, w.filter(weights)})
		show(u.node.Out[0], w.columnsOf(y, u.operand == 1), 0, f.uses)
	}
	for _, u := range w.weights {
		dw := f.add(w, u.node, OfWeights, u.node.Out[0].Name, [2]Operand{x, w.result(w.dy)})
		rows := w.rowsOfFilter(dw)
		if u.operand == 0 { // windows in columns times dy
			rows = rows.view(swapLast(rows.Shape()))
		}
		show(u.node.Out[0], rows, 0, f.uses)
	}
	if w.input != nil {
		f.gradientOfInput(w)
	}
}

// gradientOfInput puts a node in place of the sum of the parts. It leaves out the zeros around x where its readers do.
func (f *convolutionFinder) gradientOfInput(w *windowed) {
	weights, turned, _ := w.input.turned(1)
	if turned { // its rows are the terms of the windows
		weights = weights.view(swapLast(weights.Shape()))
	}
	g := w.ofInput()
	dx := f.add(g, w.input, OfInput, w.dx[0].Name, [2]Operand{w.result(w.dy), w.filter(weights)})
	shape := w.dx[0].Shape
	if n := len(w.cut); n > 0 {
		shape = w.cut[n-1].To
	}
	f.uses[w.dx[0]] = slices.DeleteFunc(f.uses[w.dx[0]], func(u use) bool {
		return slices.Contains(w.dx, u.node.Out[0])
	})
	for _, t := range w.dx {
		of := dx
		if t.Type != w.Type { // f32, in which the nodes put zeros around it
			wide := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{dx}}
			f.before[w.input] = append(f.before[w.input], wide)
			of = Operand{Tensor: wide.makes(t.Name+"/wide", t.Type, dx.Shape())}
		}
		show(t, g.grouping(of, shape), len(w.cut), f.uses)
	}
	f.uses[w.input.Out[0]] = nil // it belongs to no other convolution
}

// ofInput is the convolution whose gradient the sum of the parts is: of x with the zeros that readers do not leave out.
func (w *windowed) ofInput() *windowed {
	g := *w
	if outer := w.levels[len(w.levels)-1]; w.cut == nil {
		a := g.dimensionOf(outer.Axis)
		g.Size[a], g.Before[a], g.After[a] = outer.shape[outer.Axis], 0, 0
	}
	return &g
}

// dimensionOf is the dimension of the convolution along an axis of the windows.
func (w *windowed) dimensionOf(axis int) int { return axis - (len(w.tensor.Shape) - 1) + 2 }

// narrow is x in the type of the convolution, with the channels of all groups together. If x is in another type, a node
// converts it, once for all convolutions that read it so. Its place among the nodes is decided later.
func (f *convolutionFinder) narrow(w *windowed, before *Node) Operand {
	o := w.x
	if w.grouped {
		o = o.moved(groupsLast(len(o.Shape())))
	}
	o = o.view(View{Op: Reshape, To: []int{w.Batch, w.Size[0], w.Size[1], w.Channels}})
	if o.Tensor.Type == w.Type {
		return o
	}
	for _, cast := range f.casts[o.Tensor] {
		if cast.Out[0].Type == w.Type && sameViews(cast.In[0].Views, o.Views) {
			return Operand{Tensor: cast.Out[0]}
		}
	}
	cast := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{o}}
	f.before[before] = append(f.before[before], cast)
	f.casts[o.Tensor] = append(f.casts[o.Tensor], cast)
	return Operand{Tensor: cast.makes(o.Tensor.Name+"/narrow", w.Type, o.Shape())}
}

// groupsLast moves the first of so many dimensions before the last.
func groupsLast(rank int) []int {
	perm := make([]int, 0, rank)
	for i := 1; i < rank-1; i++ {
		perm = append(perm, i)
	}
	return append(perm, 0, rank-1)
}

// grouping shows [Batch, Size, Channels] in the shape of x, with the groups first if there are any.
func (w *windowed) grouping(o Operand, shape []int) Operand {
	if !w.grouped {
		return o.view(View{Op: Reshape, To: shape})
	}
	perm := groupsLast(len(shape))
	return o.view(View{Op: Reshape, To: permuted(shape, perm)}).moved(inverse(perm))
}

// result shows [rows, results of a group] as [Batch, ResultSize, Results]; the groups are the first dimension, if there
// are any.
func (w *windowed) result(o Operand) Operand {
	to := []int{w.Batch, w.ResultSize[0], w.ResultSize[1], w.Results}
	if !w.grouped {
		return o.view(View{Op: Reshape, To: to})
	}
	return o.moved([]int{1, 0, 2}).view(View{Op: Reshape, To: to})
}

// columnsOf shows [Batch, ResultSize, Results] as [rows, results of a group], turned or not.
func (w *windowed) columnsOf(o Operand, turned bool) Operand {
	rows := w.Batch * w.ResultSize[0] * w.ResultSize[1]
	if w.grouped {
		o = o.view(View{Op: Reshape, To: []int{rows, w.Groups, w.Results / w.Groups}}).moved([]int{1, 0, 2})
	} else {
		o = o.view(View{Op: Reshape, To: []int{rows, w.Results}})
	}
	if turned {
		o = o.view(swapLast(o.Shape()))
	}
	return o
}

// order is the order in which the terms of a row of windows have the dimensions of the kernel: as [Results, Kernel in
// that order, Channels], and how these are moved to [Results, Kernel, Channels].
func (w *windowed) order() (shape, perm []int) {
	if first := w.dimensionOf(w.levels[0].Axis); first == 1 && w.Kernel[0] > 1 {
		return []int{w.Results, w.Kernel[1], w.Kernel[0], w.Channels / w.Groups}, []int{0, 2, 1, 3}
	}
	return []int{w.Results, w.Kernel[0], w.Kernel[1], w.Channels / w.Groups}, []int{0, 1, 2, 3}
}

// filter shows weights [results of a group, terms], after the groups if there are any, as [Results, Kernel, Channels].
func (w *windowed) filter(o Operand) Operand {
	shape, perm := w.order()
	return o.view(View{Op: Reshape, To: shape}).moved(perm)
}

// rowsOfFilter is the opposite of filter.
func (w *windowed) rowsOfFilter(o Operand) Operand {
	_, perm := w.order()
	terms := w.Kernel[0] * w.Kernel[1] * w.Channels / w.Groups
	to := []int{w.Results, terms}
	if w.grouped {
		to = []int{w.Groups, w.Results / w.Groups, terms}
	}
	return o.moved(perm).view(View{Op: Reshape, To: to}) // an exchange of two dimensions is its own opposite
}

// add adds a node of the convolution before another one, and returns its result.
func (f *convolutionFinder) add(
	w *windowed, before *Node, pass ConvolutionPass, name string, in [2]Operand,
) Operand {
	c := w.Convolution
	c.Pass = pass
	n := &Node{Kind: Convolved, Op: "Convolution", In: in[:], Convolution: &c}
	p := &plainConvolution{windowed: w, into: &c}
	if g, ok := NarrowGradientOf(&c, cmp.Or(f.graph.WindowBytes, leastNarrow)); ok {
		n.Convolution, p.into = g, &g.Convolution
	}
	out := n.makes(name, c.Type, c.shape())
	p.write(in, out)
	f.before[before] = append(f.before[before], n)
	for i, o := range in {
		f.uses[o.Tensor] = append(f.uses[o.Tensor], use{n, i})
	}
	return Operand{Tensor: out}
}
