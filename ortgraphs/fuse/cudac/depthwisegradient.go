package cudac

import (
	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Limits of the program of a gradient of weights.
const (
	// mostSums is how many taps a thread sums: it keeps as many numbers of x.
	mostSums = 16
	// gradientWarps is the number of warps of a block, each of which has some taps of some positions.
	gradientWarps = 8
	// leastSteps is the number of positions below which a part is not divided: each reads as many more as it has taps.
	leastSteps = 32
)

// tapGradient is the program of the gradient of the weights. A block leaves sums of some parts of all positions.
type tapGradient struct {
	*depthwise
	taps   int    // of a warp: a group
	split  int    // groups along the second dimension
	groups int    // in all
	own    int    // groups of a block
	sets   int    // of blocks that have all groups
	down   int    // warps of a block that have the same group
	parts  int    // of all positions
	blocks [2]int // parts, channels and sets
}

func newTapGradient(k *depthwise) *tapGradient {
	g := &tapGradient{depthwise: k, split: ceil(k.Kernel[1], mostSums)}
	g.taps = ceil(k.Kernel[1], g.split)
	g.groups = k.Kernel[0] * g.split
	g.own = min(g.groups, gradientWarps)
	g.down, g.sets = gradientWarps/g.own, ceil(g.groups, g.own)
	g.blocks[1] = ceil(k.Channels, g.channels()) * g.sets
	// As many parts as blocks that run at the same time have warps for.
	k.residues = min(k.Distance[1], k.ResultSize[1])
	length, lines := ceil(k.ResultSize[1], k.residues), k.Rows*k.ResultSize[0]*k.residues
	most := max(1, summingBlocks/g.blocks[1]) * g.down
	k.run = ceil(length, max(1, min(most/lines, length/leastSteps)))
	k.runs = ceil(length, k.run)
	g.parts = lines * k.runs
	g.blocks[0] = ceil(min(g.parts, most), g.down)
	return g
}

// channels is how many a warp has.
func (g *tapGradient) channels() int { return warp * g.vector }

func (g *tapGradient) kernel(r *fuse.Region) *Kernel {
	w := &writer{}
	w.WriteString(depthwiseTemplates)
	w.line(`extern "C" __global__ void __launch_bounds__(%d, %d) region(const %s *__restrict__ p0, `+
		`const %s *__restrict__ p1, float *__restrict__ partials) {`, warp*g.own*g.down, depthwisePerProcessor,
		stored(g.In[0].Type), stored(g.In[1].Type))
	g.addProducts(w)
	g.leave(w)
	w.line("}")
	k := &Kernel{
		Source: w.String(), In: g.In[:],
		Sums:           []Sum{{r.Out[0], "sum", g.blocks[0], g.Channels * g.Taps(), 0}},
		PartialsLength: g.blocks[0] * g.Channels * g.Taps(),
		Launches: []Launch{
			{Function: "region", Blocks: g.blocks, Threads: warp * g.own * g.down, Arguments: []int{0, 1, 2}},
		},
	}
	if g.In[0] == g.In[1] {
		k.In, k.Launches[0].Arguments = g.In[:1], []int{0, 0, 1}
	}
	// The warps of a block that have the same part read it from the multiprocessor's cache.
	loads := float64(g.blocks[1]*g.parts*g.own) * (float64(g.run) + float64(g.taps-1)/2)
	for _, t := range g.In {
		bytes := min(g.channels(), g.Channels) * int(shapes.ElementSize(t.Type))
		k.Caches.Lines += loads * float64(ceil(bytes, lineSize))
		k.Caches.Sectors += loads / float64(g.own) * float64(ceil(bytes, sectorSize))
	}
	k.name()
	return k
}

// addProducts writes how a warp sums the products of its group's taps.
func (g *tapGradient) addProducts(w *writer) {
	w.line("const int lane = threadIdx.x %% %d, warp = threadIdx.x / %d, set = blockIdx.y %% %d;", warp, warp, g.sets)
	w.line("const int c0 = blockIdx.y / %d * %d + lane * %d, group = set * %d + warp %% %d;", g.sets, g.channels(),
		g.vector, g.own, g.own)
	w.line("const int tap0 = group / %d, tap1 = group %% %d * %d;", g.split, g.split, g.taps)
	w.line("float sum[%d][%d];", g.taps, g.vector)
	w.line("#pragma unroll")
	w.line("for (int i = 0; i < %d; i++)", g.taps)
	w.line("\tfor (int v = 0; v < %d; v++) sum[i][v] = 0;", g.vector)
	w.line("if (c0 < %d && group < %d)", g.Channels, g.groups)
	w.line("\tfor (int part = blockIdx.x * %d + warp / %d; part < %d; part += gridDim.x * %d) {", g.down, g.own,
		g.parts, g.down)
	w.line("const int line = part / %d, residue = part / %d %% %d, from = part %% %d * %d;", g.runs*g.residues, g.runs,
		g.residues, g.runs, g.run)
	w.line("const int at = line %% %d + (%d) + tap0 * %d;", g.ResultSize[0], g.Start[0], g.Distance[0])
	w.line("if (at < 0 || at >= %d) continue;", g.Size[0])
	w.line("const int count = min(%d, (%d - residue + %d) / %d - from), position = residue + from * %d;", g.run,
		g.ResultSize[1], g.residues-1, g.residues, g.residues)
	w.line("add_products<%d, %d, %d, %d>(sum, p1 + (line / %d * %d + at) * %d + c0, p0 + line * %d + c0,",
		g.Distance[1], g.Size[1], g.ResultSize[1], g.Channels, g.ResultSize[0], g.Size[0], g.Size[1]*g.Channels,
		g.ResultSize[1]*g.Channels)
	w.line("\tposition + (%d) + tap1 * %d, position, count);", g.Start[1], g.Distance[1])
	w.line("}")
}

// leave writes how a block adds up the sums of its warps, and leaves them in the order of the result.
func (g *tapGradient) leave(w *writer) {
	w.line("__shared__ float sums[%d][%d][%d];", g.own*g.down, g.taps, g.channels()+1)
	w.line("#pragma unroll")
	w.line("for (int i = 0; i < %d; i++)", g.taps)
	w.line("\tfor (int v = 0; v < %d; v++) sums[warp][i][lane * %d + v] = sum[i][v];", g.vector, g.vector)
	w.line("__syncthreads();")
	w.line("for (int i = threadIdx.x; i < %d; i += blockDim.x) {", g.own*g.taps*g.channels())
	w.line("const int one = i / %d %% %d, tap = i %% %d, column = i / %d;", g.taps, g.own, g.taps, g.own*g.taps)
	w.line("const int c = blockIdx.y / %d * %d + column, all = set * %d + one, last = all %% %d * %d + tap;", g.sets,
		g.channels(), g.own, g.split, g.taps)
	w.line("if (c >= %d || all >= %d || last >= %d) continue;", g.Channels, g.groups, g.Kernel[1])
	w.line("float x = sums[one][tap][column];")
	w.line("for (int j = 1; j < %d; j++) x += sums[j * %d + one][tap][column];", g.down, g.own)
	w.line("partials[(blockIdx.x * %d + c) * %d + all / %d * %d + last] = x;", g.Channels, g.Taps(), g.split,
		g.Kernel[1])
	w.line("}")
}
