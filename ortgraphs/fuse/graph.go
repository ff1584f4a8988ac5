package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

const f32 = onnxpb.TensorProto_FLOAT

// Graph is a model with fixed sizes, lowered to a few kinds of nodes. Nodes are in an order in which they can run.
type Graph struct {
	Nodes   []*Node
	Inputs  []*Tensor
	Outputs []Output
	// WindowBytes is the size from which on windows that a convolution joins are left out of memory; 0 stands for that
	// which is faster on a large GPU.
	WindowBytes int
	// LeastSaved is how many seconds filling up the sides of a product has to save; 0 stands for what a launch costs.
	LeastSaved float64
	// Refused says why no library computes some convolutions: their windows are in memory.
	Refused map[ConvolutionForm]error
	// Unsupported, unless nil, says why no program computes a region. A recurrence without a program is in no launch
	// with others, which would not have one either.
	Unsupported func(*Region) error

	model *onnxpb.ModelProto
}

// Read returns the tensors that a node reads.
func (g *Graph) Read() map[*Tensor]bool {
	read := map[*Tensor]bool{}
	for _, n := range g.Nodes {
		for _, o := range n.In {
			read[o.Tensor] = true
		}
	}
	return read
}

// Output is an output of the model: a tensor of the graph, which may have another shape of the same elements.
type Output struct {
	Name   string
	Tensor *Tensor
	Shape  []int
}

// Tensor is a value of the graph.
type Tensor struct {
	Name  string
	Type  shapes.Type
	Shape []int
	// From is the node that computes it, or nil for inputs and constants.
	From *Node
	// Constant says that the model contains it, or that it follows from the sizes. Data has the numbers if there are at
	// most 4,096 of them and each is exact. Value is the model's, or nil for a constant that Lower made.
	Constant bool
	Data     []float64
	Value    *shapes.Value
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int { return product(t.Shape) }

// Bytes returns the size in bytes.
func (t *Tensor) Bytes() int { return product(t.Shape) * int(shapes.ElementSize(t.Type)) }

// reshape gives a tensor another shape, and those who read it see the old one.
func (t *Tensor) reshape(shape []int, readers []use) {
	old := View{Op: Reshape, To: t.Shape}
	t.Shape = shape
	for _, u := range readers {
		o := &u.node.In[u.operand]
		*o = Operand{Tensor: t}.view(old).through(o.Views)
	}
}

// Kind is what a node does with its operands.
type Kind int

const (
	// Elementwise computes each element of the output from one element of each operand, which are broadcast to the
	// shape of the output.
	Elementwise Kind = iota
	// Reduction computes sum, max or min over Axes, which keep the size 1.
	Reduction
	// Join is Concat along Axes[0], also of [Windows], or Pad by Pads: each element of the output is one element of an
	// operand, or Fill.
	Join
	// Cumulation computes the sum of the elements of the operand up to each one, along Axes[0]: CumSum. Numbers in f32
	// and bf16 are added up in f64, and rounded once. Affine and LogAddExp combine them in another way. They begin with
	// their last operand, which has one element along the axis; to the others, the operands are broadcast.
	Cumulation
	// Product is a matrix product of the last two dimensions, of the transposed operands as Transposed says. Other
	// operands are added to it: a bias, which has one dimension, to each row, and then a matrix of the result's shape,
	// the residual.
	Product
	// Convolved is a convolution, or one of its gradients, until its operands are laid out for a library. Then nodes of
	// other kinds that are set apart are in its place.
	Convolved
	// Opaque is everything else. It runs as the model has it.
	Opaque
)

// Node computes tensors. Only an opaque node has more than one.
type Node struct {
	Kind Kind
	Op   string
	In   []Operand
	Out  []*Tensor
	// Axes are those of a reduction, or the axis of a Concat or a Cumulation.
	Axes []int
	// Pads are the numbers of elements that Pad puts before the first of each dimension. Fill is their value.
	Pads []int
	Fill float64
	// Exclusive says that a Cumulation leaves out the element itself, Reverse that it begins at the last one.
	Exclusive, Reverse bool
	// Alpha is the parameter of LeakyRelu and Elu.
	Alpha float64
	// Windows says which parts of the operand a Concat of them has.
	Windows Windows
	// Transposed says which operands of a product are taken with their last two dimensions exchanged.
	Transposed [2]bool
	// Convolution is what a node of the kind Convolved computes: *Convolution, *NarrowGradient or *Depthwise.
	Convolution interface {
		shape() []int           // of the result in memory
		expand(n *Node) []*Node // returns the plain nodes that take the place of n
	}
	// Model is the node of the model that an opaque node runs. In has its inputs, and then what its graphs read from
	// outside.
	Model *shapes.Node
	// Inline says that the only reader computes the node, at the places where it reads it.
	Inline bool

	// work is that of the region for which a pass has set the node apart; nil means that any may compute it. No other
	// pass changes a node that is set apart, or what it reads.
	work  Work
	after *Node  // before which no region begins that computes the node
	group *group // that computes it
}

// inner is the number of terms that each element of a product sums.
func (n *Node) inner() int {
	shape := n.In[1].Shape()
	if n.Transposed[1] {
		return shape[len(shape)-1]
	}
	return shape[len(shape)-2]
}

// adds reports whether a node is a product that adds something.
func (n *Node) adds() bool { return n.Kind == Product && len(n.In) > 2 }

func (n *Node) addsBias() bool     { return n.adds() && len(n.In[2].Shape()) == 1 }
func (n *Node) addsResidual() bool { return n.adds() && len(n.In[len(n.In)-1].Shape()) > 1 }

// makes gives a node its only result.
func (n *Node) makes(name string, t shapes.Type, shape []int) *Tensor {
	n.Out = []*Tensor{{Name: name, Type: t, Shape: shape, From: n}}
	return n.Out[0]
}

// again returns a copy of a node with operands and a result of its own.
func (n *Node) again() *Node {
	c := *n
	c.In = slices.Clone(n.In)
	c.makes(n.Out[0].Name, n.Out[0].Type, n.Out[0].Shape)
	return &c
}

// is reports whether a node is of a kind and not set apart.
func (n *Node) is(k Kind) bool { return n.Kind == k && n.work == nil }

// fusible reports whether a region of any nodes may contain the node.
func (n *Node) fusible() bool { return n.Kind <= Cumulation && n.work == nil }

// domain is the shape over which the node computes: that of the output, or of the operand of a reduction.
func (n *Node) domain() []int {
	if n.Kind == Reduction {
		return n.In[0].Shape()
	}
	return n.Out[0].Shape
}

// Operand is a tensor as a node reads it: through views, the first of which applies to the tensor.
type Operand struct {
	Tensor *Tensor
	Views  []View
}

// Shape is the shape after the views.
func (o Operand) Shape() []int {
	if len(o.Views) == 0 {
		return o.Tensor.Shape
	}
	return o.Views[len(o.Views)-1].To
}

// view returns the operand as seen through one more view.
func (o Operand) view(v View) Operand {
	v.From = o.Shape()
	if v.Op == Reshape {
		if slices.Equal(v.From, v.To) {
			return o
		}
		if n := len(o.Views); n > 0 && o.Views[n-1].Op == Reshape { // two of them are one
			return Operand{o.Tensor, slices.Clone(o.Views[:n-1])}.view(v)
		}
	}
	return Operand{o.Tensor, append(slices.Clone(o.Views), v)}
}

// through returns the operand as seen through more views.
func (o Operand) through(views []View) Operand {
	for _, v := range views {
		o = o.view(v)
	}
	return o
}

// Plain reports whether there are no views.
func (o Operand) Plain() bool { return len(o.Views) == 0 }

// Reshaped reports whether the views change nothing but the shape.
func (o Operand) Reshaped() bool {
	return !slices.ContainsFunc(o.Views, func(v View) bool { return v.Op != Reshape })
}

// ViewOp is a kind of view.
type ViewOp int

const (
	// Reshape keeps the elements in their row-major order.
	Reshape ViewOp = iota
	// Transpose makes dimension Perm[i] of the source the dimension i.
	Transpose
	// Expand repeats dimensions of size 1, and adds dimensions in front.
	Expand
	// Slice takes every Step-th element of a dimension, from Start on.
	Slice
)

// View shows the elements of a tensor in another shape or order. It moves no data.
type View struct {
	Op                ViewOp
	From, To          []int // shapes
	Perm              []int
	Axis, Start, Step int
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Terms is the number of terms that each element of a reduction or a product sums, and the last one of a Cumulation.
func (n *Node) Terms() int {
	switch n.Kind {
	case Product:
		return n.inner()
	case Cumulation:
		return n.cumulated()
	}
	return product(n.In[0].Shape()) / max(1, n.Out[0].Elements())
}
