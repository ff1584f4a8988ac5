package cudac

import (
	"fmt"
	"slices"
	"strings"
)

// Column sums have two functions: each block of the first leaves the sums of its rows, in memory, and the second adds those. Both add in a
// fixed order, so the bits are the same in every run.

// declareSums declares the sums of one thread.
func (w *writer) declareSums(b *body) {
	for i, n := range b.sums {
		w.line("float sum%d[NV];", i)
		w.line("#pragma unroll")
		w.line("for (int j = 0; j < NV; j++) sum%d[j] = %s;", i, identity(n.Op, "float"))
	}
}

const (
	finishWide = 32 // columns of a block
	finishDeep = 32 // threads of a column
)

// finish writes the second function: sums adds the parts of so many blocks.
func (b *body) finish(w *writer, blocks, scratch int) Launch {
	s := b.shape
	launch := Launch{Function: "sums", Blocks: [2]int{ceil(s.C, finishWide), len(b.sums)}, Threads: finishWide * finishDeep, Arguments: []int{scratch}}
	parameters := []string{"const float *__restrict__ parts"}
	for i, n := range b.sums {
		parameters = append(parameters, fmt.Sprintf("%s *__restrict__ s%d", stored(n.Out[0].Type), i))
		launch.Arguments = append(launch.Arguments, len(b.inputs)+slices.Index(b.region.Out, n.Out[0]))
	}
	w.line("")
	w.line("extern \"C\" __global__ void __launch_bounds__(%d) sums(%s) {", finishWide*finishDeep, strings.Join(parameters, ", "))
	w.line("__shared__ float all[%d][%d];", finishDeep, finishWide+1)
	w.line("const int across = threadIdx.x %% %d, down = threadIdx.x / %d;", finishWide, finishWide)
	for i, n := range b.sums {
		w.line("if (blockIdx.y == %d) {", i)
		w.line("const int column = blockIdx.x * %d + across;", finishWide)
		w.line("float x = %s;", identity(n.Op, "float"))
		w.line("if (column < %d) for (int i = down; i < %d; i += %d) x = %s_of(x, parts[(%d + i) * %d + column]);", s.C, blocks, finishDeep, n.Op, i*blocks, s.C)
		w.line("all[down][across] = x;")
		w.line("__syncthreads();")
		w.line("x = group_%s<32>(all[across][down]);", n.Op)
		w.line("const int c = blockIdx.x * %d + down;", finishWide)
		w.axes(s, s.cols, "c")
		t := n.Out[0]
		w.line("if (across == 0 && c < %d) s%d[%s] = x;", s.C, i, flat(b.places.index(b.loops.Of(t)), t.Shape))
		w.line("}")
	}
	w.line("}")
	return launch
}
