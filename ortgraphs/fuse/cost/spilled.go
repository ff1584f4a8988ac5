package cost

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

const (
	// leastWindows is the size of windows from which on a convolution without them is faster.
	leastWindows = 16 << 20
	// channelsOf divides the channels of a group that a library convolves, headColumns and mostColumns are the columns
	// of a head for which there is a kernel.
	channelsOf               = 8
	headColumns, mostColumns = 16, 128
)

// findSpilled finds the tensors in memory that another form of the same computation would not have: windows of
// convolutions with their gradients, and the scores of attention.
func (t *tally) findSpilled() map[*fuse.Tensor]cause {
	spilled := map[*fuse.Tensor]cause{}
	t.findWindows(spilled)
	t.findScores(spilled)
	return spilled
}

// spilledBy is the cause that a kernel reads or writes such a tensor.
func (t *tally) spilledBy(lists ...[]*fuse.Tensor) cause {
	for _, list := range lists {
		for _, x := range list {
			if c, ok := t.spilled[x]; ok {
				return c
			}
		}
	}
	return cause{}
}

// size is that of a matrix with several rows of terms: its elements, and the terms of a row.
type size struct{ elements, terms int }

func sizeOf(x *fuse.Tensor) size { return size{x.Elements(), x.Shape[max(0, len(x.Shape)-1)]} }

// filledUp reports whether a matrix is another one, whose rows may be filled up to a multiple of 8.
func filledUp(x, other size) bool {
	return x.elements/max(1, x.terms) == other.elements/max(1, other.terms) && x.terms-other.terms >= 0 &&
		x.terms-other.terms < channelsOf || x.elements == other.elements
}

// findWindows finds windows that a region without a convolution writes for products, and gradients of windows that
// products write.
func (t *tally) findWindows(spilled map[*fuse.Tensor]cause) {
	windows := map[size]cause{}
	for _, r := range t.regions {
		if fuse.ConvolutionOf(r.Work) != nil {
			continue
		}
		for _, n := range r.Nodes {
			if n.Op != "Windows" || n.Out[0].Bytes() < leastWindows {
				continue
			}
			for _, x := range r.Out {
				if len(x.Shape) > 0 && filledUp(sizeOf(x), sizeOf(n.Out[0])) {
					windows[sizeOf(x)] = t.windowsCause(n, x)
					spilled[x] = windows[sizeOf(x)]
				}
			}
		}
	}
	for _, n := range t.graph.Nodes {
		if n.Kind != fuse.Product || len(n.Out[0].Shape) == 0 {
			continue
		}
		if c, ok := windows[sizeOf(n.Out[0])]; ok && !t.outputs[n.Out[0]] {
			spilled[n.Out[0]] = c
		}
	}
}

// windowsCause says why windows are in memory.
func (t *tally) windowsCause(n *fuse.Node, x *fuse.Tensor) cause {
	channels := n.Out[0].Shape[len(n.Out[0].Shape)-1] / max(1, n.Windows.Parts)
	results := t.results(x)
	switch known := x.Type == onnxpb.TensorProto_FLOAT || x.Type == onnxpb.TensorProto_BFLOAT16; {
	case n.Windows.Step > 1:
		return cause{"windows of a convolution with a stride are in memory", Nothing}
	case !known:
		return cause{"windows are in memory", Nothing}
	case channels%channelsOf != 0:
		return cause{fmt.Sprintf("windows are in memory: %d channels are no multiple of %d", channels, channelsOf),
			Channels}
	case results%channelsOf != 0:
		return cause{fmt.Sprintf("windows are in memory: %d channels of the result are no multiple of %d", results,
			channelsOf), Channels}
	case len(t.graph.Refused) > 0: // which may be others
		return cause{"windows are in memory: cuDNN does not compute their convolution, something else reads them, or " +
			"an output is their product", Nothing}
	}
	return cause{"windows are in memory: something else reads them, or an output is their product", Nothing}
}

// results is the number of channels that products make of windows; 0 if none reads them.
func (t *tally) results(x *fuse.Tensor) int {
	for _, n := range t.graph.Nodes {
		for i, o := range n.In[:min(2, len(n.In))] {
			if n.Kind == fuse.Product && o.Tensor == x {
				shape := n.Out[0].Shape
				return shape[len(shape)-1-i]
			}
		}
	}
	return 0
}

// square is the size of a matrix of queries and keys, in either order.
type square struct{ elements, least, most int }

func squareOf(x *fuse.Tensor) square {
	rank := len(x.Shape)
	if rank < 3 {
		return square{}
	}
	a, b := x.Shape[rank-1], x.Shape[rank-2]
	return square{x.Elements(), min(a, b), max(a, b)}
}

// findScores finds tensors of the size of scores whose softmax runs outside of attention's kernels.
func (t *tally) findScores(spilled map[*fuse.Tensor]cause) {
	made := map[square]*fuse.Node{} // by products of two batches of matrices
	for _, n := range t.graph.Nodes {
		if n.Kind == fuse.Product && len(n.In[0].Shape()) > 2 && len(n.In[1].Shape()) > 2 && n.Terms() <= mostTerms {
			if s := squareOf(n.Out[0]); s.elements > 0 && made[s] == nil {
				made[s] = n
			}
		}
	}
	scores := map[square]cause{}
	for _, r := range t.regions {
		if _, ok := r.Work.(*fuse.Attention); ok {
			continue
		}
		for _, n := range r.Nodes {
			if p := made[squareOf(n.Out[0])]; n.Op == "Exp" && p != nil {
				scores[squareOf(n.Out[0])] = t.scoresCause(p)
			}
		}
	}
	for _, n := range t.graph.Nodes {
		for _, x := range n.Out {
			if c, ok := scores[squareOf(x)]; ok && x.Type != onnxpb.TensorProto_BOOL {
				spilled[x] = c
			}
		}
	}
}

// mostTerms is the number of columns of heads up to which their products are taken for attention.
const mostTerms = 2 * mostColumns

// scoresCause says why the scores of a product are in memory.
func (t *tally) scoresCause(p *fuse.Node) cause {
	columns := p.Terms()
	fits := columns%headColumns == 0 && columns <= mostColumns
	switch short := p.Out[0].Type == onnxpb.TensorProto_BFLOAT16; {
	case short && !fits:
		return cause{
			fmt.Sprintf("attention keeps scores in memory: there is no kernel for heads of %d columns", columns),
			HeadColumns,
		}
	case short:
		return cause{"attention keeps scores in memory: more than a softmax reads them, or a bias of them is trained",
			PlainScores}
	case fits && t.BF16Attention != nil && t.BF16Attention():
		return cause{"attention in f32 keeps scores in memory", BF16Attention}
	}
	return cause{"attention in f32 keeps scores in memory", Nothing}
}

// reasonOf is why a region has no kernel, without the names of its tensors.
func reasonOf(r *fuse.Region, reason string) cause {
	if text, ok := strings.CutPrefix(reason, Faulty); ok {
		return cause{"a kernel is faulty, so it is not used: " + text, Report}
	}
	names := map[string]bool{}
	for _, n := range r.Nodes {
		for _, x := range append(tensorsOf(n), n.Out...) {
			names[x.Name] = true
		}
	}
	words := strings.Fields(reason)
	for i, w := range words {
		if names[w] {
			words[i] = "a tensor"
		}
	}
	return cause{"no kernel: " + strings.Join(words, " "), Nothing}
}

// Faulty begins the reason of a region whose kernel exists, and is not used.
const Faulty = "faulty: "
