package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// plainConvolution writes a convolution as the nodes that it replaces, for when the library's is wrong: windows and a
// product, or a product and the sum of its parts.
type plainConvolution struct {
	*windowed
	into *Convolution
}

// write sets the plain nodes, which read what stands for the operands, and compute what stands for the result.
func (p *plainConvolution) write(in [2]Operand, out *Tensor) {
	for i, o := range in {
		p.into.holes[i] = &Tensor{Name: o.Tensor.Name, Type: p.Type, Shape: o.Shape()}
	}
	first, second := Operand{Tensor: p.into.holes[0]}, Operand{Tensor: p.into.holes[1]}
	var result Operand
	switch p.into.Pass {
	case Forward:
		y := p.product(p.windowsOf(first), p.rowsOfFilter(second), [2]bool{false, true}, out)
		result = p.result(y)
	case OfWeights:
		dw := p.product(p.columnsOf(second, false), p.windowsOf(first), [2]bool{true, false}, out)
		result = p.filter(dw)
	case OfInput:
		parted := p.product(p.columnsOf(first, false), p.rowsOfFilter(second), [2]bool{}, out)
		known := func(o Operand) (Operand, bool) {
			return operandOf(o, Operand{Tensor: p.input.Out[0]}, parted)
		}
		dx := Operand{Tensor: p.again(p.dx[0], known, map[*Tensor]*Tensor{})}.through(p.cut)
		if p.grouped {
			dx = dx.moved(groupsLast(len(dx.Shape())))
		}
		result = dx.view(View{Op: Reshape, To: out.Shape})
	}
	op := "Copy"
	if result.Tensor.Type != p.Type {
		op = "Cast"
	}
	p.node(&Node{Kind: Elementwise, Op: op, In: []Operand{result}}, out.Name, p.Type, out.Shape)
}

func (p *plainConvolution) node(n *Node, name string, t shapes.Type, shape []int) *Tensor {
	p.into.plain = append(p.into.plain, n)
	return n.makes(name, t, shape)
}

// product multiplies matrices, group by group if there are several.
func (p *plainConvolution) product(a, b Operand, turned [2]bool, out *Tensor) Operand {
	rank := len(a.Shape())
	rows, columns := a.Shape()[rank-2], b.Shape()[rank-1]
	if turned[0] {
		rows = a.Shape()[rank-1]
	}
	if turned[1] {
		columns = b.Shape()[rank-2]
	}
	shape := append(slices.Clone(a.Shape()[:rank-2]), rows, columns)
	n := &Node{Kind: Product, Op: "MatMul", In: []Operand{a, b}, Transposed: turned}
	return Operand{Tensor: p.node(n, out.Name+"/product", p.Type, shape)}
}

// windowsOf writes the windows of x once more, and shows them as rows, group by group if there are several.
func (p *plainConvolution) windowsOf(x Operand) Operand {
	base := p.grouping(x, p.x.Shape())
	if p.x.Tensor.Type != p.Type { // the nodes that put zeros around it read f32
		wide := &Node{Kind: Elementwise, Op: "Cast", In: []Operand{base}}
		base = Operand{Tensor: p.node(wide, x.Tensor.Name+"/wide", onnxpb.TensorProto_FLOAT, base.Shape())}
	}
	known := func(o Operand) (Operand, bool) { return operandOf(o, p.x, base) }
	t := p.again(p.tensor, known, map[*Tensor]*Tensor{})
	last := len(t.Shape) - 1
	to := []int{product(t.Shape[:last]), t.Shape[last]}
	if p.grouped {
		to = []int{t.Shape[0], product(t.Shape[1:last]), t.Shape[last]}
	}
	return Operand{Tensor: t}.view(View{Op: Reshape, To: to})
}

// operandOf replaces the beginning of an operand, if it is what is known.
func operandOf(o, known, by Operand) (Operand, bool) {
	n := len(known.Views)
	if o.Tensor != known.Tensor || len(o.Views) < n || !sameViews(o.Views[:n], known.Views) {
		return o, false
	}
	return by.through(o.Views[n:]), true
}

// again writes the nodes that compute a tensor once more, from what is known.
func (p *plainConvolution) again(t *Tensor, known func(o Operand) (Operand, bool), made map[*Tensor]*Tensor) *Tensor {
	if made[t] != nil {
		return made[t]
	}
	n := t.From.again()
	for i, o := range n.In {
		by, ok := known(o)
		if !ok && o.Tensor.From != nil {
			by = Operand{p.again(o.Tensor, known, made), o.Views}
		}
		n.In[i] = by
	}
	made[t] = n.Out[0]
	p.into.plain = append(p.into.plain, n)
	return n.Out[0]
}

// expand returns the plain nodes of a convolution, which read its operands and compute its result. They are set apart
// for the library.
func (c *Convolution) expand(n *Node) []*Node {
	for _, p := range c.plain {
		p.work = c
		for i, o := range p.In {
			if h := slices.Index(c.holes[:], o.Tensor); h >= 0 {
				p.In[i], c.readers[h] = n.In[h].through(o.Views), use{p, i}
			}
		}
	}
	last := c.plain[len(c.plain)-1]
	last.Out = n.Out
	n.Out[0].From = last
	return c.plain
}
