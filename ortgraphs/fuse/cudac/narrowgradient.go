package cudac

import (
	_ "embed"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

var (
	//go:embed matrices.cuh
	matrices string
	//go:embed narrowgradient.cuh
	narrowTemplates string
)

// alignedMemory is what a launch asks for beyond what it needs, because its program aligns it.
const alignedMemory = 1 << 10

// newNarrowGradient writes the program of a gradient of few channels.
func newNarrowGradient(r *fuse.Region, g *fuse.NarrowGradient) *Kernel {
	threads, columns := warp*g.Warps(), r.Out[0].Elements()
	w := &writer{}
	w.WriteString(matrices)
	w.WriteString(narrowTemplates)
	w.narrowForm(g)
	w.line(`extern "C" __global__ void __launch_bounds__(%d, 1) region(const bf16 *__restrict__ p0, `+
		`const bf16 *__restrict__ p1, float *__restrict__ partials) {`, threads)
	w.line("add_narrow<narrow<form>>(p0, p1, partials);")
	w.line("}")
	blocks := min(fuse.NarrowBlocks, g.Strips())
	k := &Kernel{
		Source: w.String(), In: g.In[:], Sums: []Sum{{r.Out[0], "sum", blocks, columns, 0}},
		PartialsLength: blocks * columns,
		Launches: []Launch{{
			Function: "region", Blocks: [2]int{blocks, 1}, Threads: threads, Shared: alignedMemory + g.Memory(),
			Arguments: []int{0, 1, 2},
		}},
	}
	if g.In[0] == g.In[1] {
		k.In, k.Launches[0].Arguments = g.In[:1], []int{0, 0, 1}
	}
	k.name()
	return k
}

// narrowForm writes the sizes.
func (w *writer) narrowForm(g *fuse.NarrowGradient) {
	w.line("struct form {")
	for _, s := range []struct {
		name string
		size int
	}{
		{"BATCH", g.Batch}, {"X_ROWS", g.Size[0]}, {"X_COLUMNS", g.Size[1]}, {"Y_ROWS", g.ResultSize[0]},
		{"Y_COLUMNS", g.ResultSize[1]}, {"CHANNELS", g.Channels}, {"RESULTS", g.Results}, {"KERNEL_ROWS", g.Kernel[0]},
		{"KERNEL_COLUMNS", g.Kernel[1]}, {"DILATION", g.Dilation[1]}, {"ROWS_BEFORE", g.Before[0]},
		{"COLUMNS_BEFORE", g.Before[1]}, {"STRIP_ROWS", g.Strip[0]}, {"STRIP_COLUMNS", g.Strip[1]},
		{"AHEAD", fuse.NarrowAhead}, {"SUMS_APART", fuse.NarrowSumsApart},
	} {
		w.line("static constexpr int %s = %d;", s.name, s.size)
	}
	w.line("};")
}
