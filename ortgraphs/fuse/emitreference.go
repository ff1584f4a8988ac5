package fuse

import (
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// reference writes a node as plain does, with no more roundings than the node has in the graph. ONNX Runtime's nodes
// have more. Its functions in bf16 round each step: Sigmoid does after exp, 1 + x, 1 / x and 1 - x, and is 0 below -6.
// Its sums add up as many as hundreds of terms one after another, and terms that are all alike have the same rounding
// each time. Kernels have neither, and what they are compared with must not.
//
// Where a region is given, the partial sums move, too.
func (w *proofWriter) reference(n *Node, moving *Region) {
	switch {
	case n.Kind == Elementwise && n.Out[0].Type == onnxpb.TensorProto_BFLOAT16 && roundsInside(n.Op):
		in, out := w.operands(n), w.result(n)
		for i, o := range n.In {
			if o.Tensor != nil && o.Tensor.Type == onnxpb.TensorProto_BFLOAT16 {
				in[i] = w.cast(in[i], w.unique(in[i]+"~f32"), onnxpb.TensorProto_FLOAT)
			}
		}
		wide := w.unique(out[0] + "~f32")
		w.function(n, in, []string{wide})
		w.cast(wide, out[0], onnxpb.TensorProto_BFLOAT16)
	case n.sums() && isFloating(n.Out[0].Type) && product(n.In[0].Shape()) > 0 && !n.Out[0].OfKernels():
		w.sum(n, moving)
	default:
		w.plain(n)
	}
}

// roundsInside reports whether a node in bf16 may round more than once.
func roundsInside(op string) bool {
	return operators.Table[op].Exactness == operators.Rounded && op != "Div" && op != "Mod"
}

func (n *Node) sums() bool { return n.Kind == Reduction && n.Op == "sum" }

func (w *proofWriter) cast(from, to string, t onnxpb.TensorProto_DataType) string {
	w.node("Cast", []string{from}, []string{to}, integerAttribute("to", int(t)))
	return to
}

// longestRun is the number of terms from which a sum is one of partial sums.
const longestRun = 64

// sum writes a sum as one of partial sums in f32, or in f64 if it is in f64, of one dimension after another. In the
// region moving, each partial sum moves as far as the roundings of its terms.
func (w *proofWriter) sum(n *Node, moving *Region) {
	t, wide := n.Out[0], onnxpb.TensorProto_FLOAT
	if isDouble(t.Type) {
		wide = onnxpb.TensorProto_DOUBLE
	}
	var shape, steps []int // the dimensions, and those of them that are reduced, the innermost first
	for i, d := range n.In[0].Shape() {
		parts := []int{d}
		if slices.Contains(n.Axes, i) {
			if k := divisor(d); d > longestRun && k > 1 {
				parts = []int{k, d / k}
			}
			for j, p := range parts {
				if p > 1 {
					steps = append([]int{len(shape) + j}, steps...)
				}
			}
		}
		shape = append(shape, parts...)
	}
	x := w.operand(n.In[0])
	if t.Type != wide {
		x = w.cast(x, w.unique(x+"~f32"), wide)
	}
	terms := 1
	for i, axis := range steps {
		k := shape[axis]
		matrix := []int{product(shape[:axis]), k, product(shape[axis+1:])}
		shape[axis] = 1
		partial := &Tensor{Name: t.Name + "~partial", Type: wide, Shape: []int{matrix[0], 1, matrix[2]}}
		in := w.unique(partial.Name + "~terms")
		w.node("Reshape", []string{x, w.shape(matrix)}, []string{in})
		w.node("ReduceSum", []string{in, w.shape([]int{1})}, []string{w.place(partial, partial.Shape)},
			integerAttribute("keepdims", 1))
		if terms *= k; moving != nil && i < len(steps)-1 && !w.exact[t] {
			w.move(moving, partial, walk(terms))
		}
		x = w.find(partial).name
	}
	out := w.result(n)[0]
	if t.Type != wide {
		x = w.cast(x, w.unique(x+"~rounded"), t.Type)
	}
	w.node("Reshape", []string{x, w.shape(t.Shape)}, []string{out}, reshapeAttributes(t.Shape)...)
}

// divisor is the largest one up to the square root.
func divisor(n int) int {
	k := int(math.Sqrt(float64(n)))
	for n%k > 0 {
		k--
	}
	return k
}

// walk is how far the roundings of a sum of f32 go, in units of its last place: half a unit for each term at most, up
// or down at random.
func walk(terms int) int { return max(1, int(math.Sqrt(float64(terms))/2)) }
