package fuse

import "github.com/xtts-host/xtts-host/ortgraphs/onnxpb"

// NarrowGradient is the gradient of the weights of a convolution of few channels in bf16, which a kernel computes:
// cuDNN's fill up 32 channels to 64, and read x once for each pair of taps.
//
// A block computes strips of y, of Strip[0] rows and Strip[1] columns. It has some rows of a strip in shared memory at
// a time, and what their taps read of x. Each of its warps has the sums of all taps of 16 results, of 16 columns.
type NarrowGradient struct {
	Convolution
	Strip [2]int
}

// Sizes of a NarrowGradient.
const (
	// NarrowStep divides the columns of a strip among warps, and channels and results.
	NarrowStep = 16
	// NarrowAhead is the number of rows that are loaded while others are multiplied.
	NarrowAhead = 3
	// NarrowBlocks is the number of blocks: that of the multiprocessors of most GPUs of compute capability 9.0.
	NarrowBlocks = 132
	// NarrowSumsApart is how many more sums a row in shared memory has room for: so the rows of a warp are in different
	// banks.
	NarrowSumsApart = 8

	// mostNarrow is the largest number of channels and of results.
	mostNarrow = 32
	// mostNarrowSquares is the number of squares of 16 x 16 sums that a warp has, each in 8 registers of a thread.
	// mostNarrowWarps is that of warps of a block, whose threads may then have 255 registers.
	mostNarrowSquares, mostNarrowWarps = 18, 8
	// mostNarrowMemory limits the shared memory of a block, in bytes: what GPUs of compute capability 8.0 and more
	// have, without what the driver takes and an alignment.
	mostNarrowMemory = 96 << 10
	// leastNarrow is the number of elements of x and y from which on the kernel is worth the partial sums of its
	// blocks.
	leastNarrow = 8 << 20
)

// NarrowGradientOf returns the gradient of the weights of a convolution, or false if a library is to compute it, as it
// is if x and y have fewer elements than the least.
func NarrowGradientOf(c *Convolution, least int) (*NarrowGradient, bool) {
	g := &NarrowGradient{Convolution: *c}
	x, y := c.Batch*c.Size[0]*c.Size[1]*c.Channels, c.Batch*c.ResultSize[0]*c.ResultSize[1]*c.Results
	if c.Pass != OfWeights || c.Type != onnxpb.TensorProto_BFLOAT16 || c.Groups > 1 || c.Stride != [2]int{1, 1} ||
		c.Dilation[0] > 1 || max(c.Channels, c.Results) > mostNarrow || x+y < least || c.Kernel[0] < 2 ||
		c.Kernel[0]*c.Kernel[1]*narrowCeil(c.Channels) > mostNarrowSquares {
		return nil, false
	}
	return g, g.chooseStrip()
}

// narrowCeil is the number of steps of a size.
func narrowCeil(size int) int { return (size + NarrowStep - 1) / NarrowStep }

// chooseStrip chooses the strip that keeps the most warps busy with columns that there are. It returns false if none
// fits.
func (g *NarrowGradient) chooseStrip() bool {
	columns, best := 0, 0.0
	for down := 1; down*narrowCeil(g.Results) <= mostNarrowWarps; down++ {
		g.Strip[1] = down * NarrowStep
		if busy := float64(g.ResultSize[1]) / float64(g.across()); busy >= best && g.Memory() <= mostNarrowMemory {
			columns, best = g.Strip[1], busy
		}
	}
	if g.Strip[1] = columns; columns == 0 {
		return false
	}
	// Each strip reads the rows of x before and after it once more, and the blocks have equal work if they have equally
	// many strips.
	rows, least := 0, 0
	for parts := 1; parts <= g.ResultSize[0]; parts++ {
		g.Strip[0] = (g.ResultSize[0] + parts - 1) / parts
		own := (g.Strips() + NarrowBlocks - 1) / NarrowBlocks
		if work := own * (g.Strip[0] + g.Kernel[0] - 1); least == 0 || work < least {
			rows, least = g.Strip[0], work
		}
	}
	g.Strip[0] = rows
	return true
}

// across is the number of strips beside each other.
func (g *NarrowGradient) across() int { return (g.ResultSize[1] + g.Strip[1] - 1) / g.Strip[1] }

// Strips is the number of strips.
func (g *NarrowGradient) Strips() int {
	return g.Batch * g.across() * ((g.ResultSize[0] + g.Strip[0] - 1) / g.Strip[0])
}

// Warps is the number of warps of a block.
func (g *NarrowGradient) Warps() int { return g.Strip[1] / NarrowStep * narrowCeil(g.Results) }

// NarrowPitch is the distance of two positions of so many channels in shared memory, in bytes: an odd number of 16
// bytes, so that eight of them are in different banks.
func NarrowPitch(channels int) int { return 2*NarrowStep*narrowCeil(channels) + 16 }

// Memory is the shared memory of a block, in bytes: rows of x and y, and after these the sums of all taps.
func (g *NarrowGradient) Memory() int {
	read := g.Strip[1] + (g.Kernel[1]-1)*g.Dilation[1]
	row := read*NarrowPitch(g.Channels) + g.Strip[1]*NarrowPitch(g.Results)
	wide := NarrowStep*narrowCeil(g.Channels) + NarrowSumsApart
	sums := 4 * g.Kernel[0] * g.Kernel[1] * NarrowStep * narrowCeil(g.Results) * wide
	return max((g.Kernel[0]+NarrowAhead)*row, sums)
}

func (g *NarrowGradient) complete(r *Region) {
	g.Convolution.complete(r)
	r.ColumnSums = 1
}

func (g *NarrowGradient) count(*Ledger, *Region) (kernels int) { return 1 }

func (g *NarrowGradient) expand(n *Node) []*Node {
	nodes := g.Convolution.expand(n)
	for _, p := range nodes {
		p.work = g
	}
	return nodes
}

// ConvolutionOf is the convolution that a library or a kernel computes, or nil.
func ConvolutionOf(w Work) *Convolution {
	switch w := w.(type) {
	case *Convolution:
		return w
	case *NarrowGradient:
		return &w.Convolution
	}
	return nil
}
