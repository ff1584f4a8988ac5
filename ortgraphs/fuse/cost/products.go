package cost

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// How a library multiplies, measured on an H100 and an H200 (docs/results/history-fusion.md has the times).
const (
	// Parts of the data sheet's rates that a product reaches while all multiprocessors are busy. In TF32 that depends
	// on whether the terms of a sum are neighbours in both operands. A convolution in bf16 computes addresses, too;
	// one in f32 or TF32 is taken for a product.
	reachedBF16  = 0.8
	reachedTF32  = 0.7
	reachedApart = 0.42
	reachedF32   = 0.8
	reachedConv  = 0.75
	// A sum is divided among so many multiprocessors at most, and only into parts of so many terms. Another kernel adds
	// what they leave.
	mostParts = 16
	leastPart = 512
	// A library loads operands whose rows are not aligned element by element.
	reachedUnaligned = 0.25
	// groupChannels is the number of channels of a group to which cuDNN fills up.
	groupChannels = 64
)

// tiles are the sides of the squares that a multiprocessor computes at a time, and what part of the rate it reaches
// with them: a smaller square reads its operands more often.
var tiles = []struct {
	side    int
	reached float64
}{{128, 1}, {64, 0.65}, {32, 0.4}}

// form is a number of products [rows, inner] [inner, columns] of one launch.
type form struct {
	count, rows, inner, columns int
	// transposed says which operands are in memory with their dimensions exchanged.
	transposed [2]bool
	element    shapes.Type
	parts      int // into which a sum may be divided; 0 stands for mostParts
	reached    float64
}

func (f form) flops() float64 {
	return 2 * float64(f.count) * float64(f.rows) * float64(f.inner) * float64(f.columns)
}

func (f form) String() string {
	text := fmt.Sprintf("[%d %d] [%d %d]", f.rows, f.inner, f.inner, f.columns)
	if f.count > 1 {
		text = fmt.Sprintf("%d of %s", f.count, text)
	}
	return text
}

// formOf is that of a node that is a matrix product.
func formOf(n *fuse.Node) form {
	shape := n.Out[0].Shape
	f := form{
		count: 1, columns: shape[len(shape)-1], inner: n.Terms(), transposed: n.Transposed, element: n.Out[0].Type,
	}
	if len(n.In[1].Shape()) > 2 {
		for _, d := range shape[:len(shape)-2] {
			f.count *= d
		}
	}
	f.rows = n.Out[0].Elements() / max(1, f.columns*f.count)
	return f
}

// peak is the data sheet's rate for products of elements of a type.
func (s Settings) peak(t shapes.Type) float64 {
	switch {
	case t == onnxpb.TensorProto_BFLOAT16 || t == onnxpb.TensorProto_FLOAT16:
		return s.Card.BF16
	case s.TF32 && t == onnxpb.TensorProto_FLOAT:
		return s.Card.TF32
	}
	return s.Card.F32
}

func (s Settings) inTF32(t shapes.Type) bool { return t == onnxpb.TensorProto_FLOAT && s.TF32 }

// apart reports whether the terms of a sum are apart in an operand. The left one has rows of terms, the right one
// columns.
func (f form) apart() bool { return f.transposed[0] || !f.transposed[1] }

// aligned reports whether the rows of all matrices begin at addresses from which a multiprocessor loads 16 bytes.
func (f form) aligned() bool {
	by := 16 / max(1, int(shapes.ElementSize(f.element)))
	return f.inner%by == 0 && f.columns%by == 0 && (!f.transposed[0] || f.rows%by == 0)
}

// seconds is how long products are expected to compute, and what part of the multiprocessors is busy with what is
// needed.
func (f form) seconds(s Settings) (seconds, used float64) {
	reached := f.reached
	switch {
	case reached != 0:
	case s.peak(f.element) == s.Card.F32:
		reached = reachedF32
	case s.inTF32(f.element) && f.apart():
		reached = reachedApart
	case s.inTF32(f.element):
		reached = reachedTF32
	default:
		reached = reachedBF16
	}
	if !f.aligned() && s.peak(f.element) != s.Card.F32 {
		reached *= reachedUnaligned
	}
	whole := f.flops() / (s.peak(f.element) * reached)
	best := math.Inf(1)
	for _, height := range tiles {
		for _, width := range tiles {
			rows, columns := ceil(f.rows, height.side), ceil(f.columns, width.side)
			filled := float64(rows*height.side*columns*width.side) / float64(max(1, f.rows*f.columns))
			busy, parts := s.busy(f.count*rows*columns, f.inner, max(f.parts, mostParts))
			computing := whole * filled / (height.reached * width.reached * busy)
			if parts > 1 {
				computing += inGraph + float64(parts*f.count*f.rows*f.columns)*8/s.Card.cacheRate()
			}
			best = min(best, computing)
		}
	}
	return best, whole / best
}

// busy is the part of the multiprocessors that compute so many squares, each of so many terms, and into how many parts
// the sums are divided for it.
func (s Settings) busy(squares, inner, most int) (best float64, parts int) {
	for part := 1; part <= most && (part == 1 || inner/part >= leastPart); part++ {
		blocks := squares * part
		used := float64(blocks) / float64(ceil(blocks, s.Card.Multiprocessors)*s.Card.Multiprocessors)
		if used > best {
			best, parts = used, part
		}
		if blocks >= s.Card.Multiprocessors {
			break
		}
	}
	return max(best, 1e-6), parts
}

func ceil(a, b int) int { return (a + b - 1) / max(1, b) }

// convolved is the product that a convolution, or one of its gradients, is. The sizes of a group are filled up.
func convolved(c *fuse.Convolution) form {
	fill := func(n int) int { return ceil(n, groupChannels) * groupChannels }
	taps := c.Kernel[0] * c.Kernel[1]
	channels, results := fill(c.Channels/c.Groups), fill(c.Results/c.Groups)
	f := form{count: c.Groups, element: c.Type}
	if c.Type == onnxpb.TensorProto_BFLOAT16 {
		f.reached = reachedConv
	}
	// The channels of x and of the weights, and the results of y, are neighbours in memory.
	f.transposed = [...][2]bool{fuse.Forward: {false, true}, fuse.OfInput: {}, fuse.OfWeights: {true, false}}[c.Pass]
	switch c.Pass {
	case fuse.Forward:
		f.rows, f.inner, f.columns = c.Batch*c.ResultSize[0]*c.ResultSize[1], taps*channels, results
	case fuse.OfInput:
		// With a stride, a position has only some of the taps.
		f.rows = ceil(c.Batch*c.Size[0]*c.Size[1], c.Stride[0]*c.Stride[1])
		f.inner, f.columns = taps*results, channels
	default:
		f.rows, f.inner, f.columns = results, c.Batch*c.ResultSize[0]*c.ResultSize[1], taps*channels
		f.parts = math.MaxInt32 // of the positions, with memory for the parts
	}
	return f
}

// needed are the operations of a convolution without what is filled up.
func needed(c *fuse.Convolution) float64 {
	positions := c.Batch * c.ResultSize[0] * c.ResultSize[1]
	return 2 * float64(positions) * float64(c.Kernel[0]*c.Kernel[1]) * float64(c.Channels/c.Groups) * float64(c.Results)
}
