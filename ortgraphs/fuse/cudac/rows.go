package cudac

import (
	"fmt"
	"slices"
)

// rows is the program of a region that reduces rows. A row is in the registers of a group of threads: of up to a warp
// if it is short, otherwise of a block.
type rows struct {
	*body
	width   int // threads of a group
	chunks  int // vectors of a thread
	perTurn int // rows of a block at a time
	blocks  int
}

const (
	// maxWarpRow is the number of columns up to which a warp computes a row.
	maxWarpRow = 1024
	// minBlockRow is the number of columns from which a block computes a row if there are at most fewRows: with a warp
	// for each, there is no block for most processors of an H200.
	minBlockRow, fewRows = 256, 132 * blockThreads / 32
	// summingBlocks limits the blocks of a region with column sums, each of which leaves a partial sum of each: two for
	// each processor of an H200.
	summingBlocks = 264
)

func newRows(b *body) *rows {
	s := b.shape
	k := &rows{body: b, width: blockThreads}
	if s.C <= maxWarpRow && (s.C < minBlockRow || s.R > fewRows) {
		for k.width = 1; k.width < 32 && k.width*s.V < s.C; {
			k.width *= 2
		}
	}
	k.chunks = ceil(s.C, k.width*s.V)
	k.perTurn = blockThreads / k.width
	k.blocks = ceil(s.R, k.perTurn)
	if len(b.sums) > 0 {
		k.blocks = min(k.blocks, summingBlocks)
	}
	b.completes(blockThreads, s.C, [2]int{k.blocks, 1})
	return k
}

func ceil(a, b int) int { return (a + b - 1) / b }

func (k *rows) kernel() *Kernel {
	w, s := &writer{}, k.shape
	perProcessor := 0
	if len(k.sums) > 0 && k.chunks*s.V <= 16 {
		perProcessor = 2
	}
	w.begin(k.body, blockThreads, perProcessor)
	w.line("constexpr int NV = %d;", k.chunks*s.V)
	w.line("const int lane = threadIdx.x %% %d, group = threadIdx.x / %d;", k.width, k.width)
	w.line("const bool first = lane == 0;")
	w.declareSums(k.body)
	w.line("for (int start = blockIdx.x * %d; start < %d; start += gridDim.x * %d) {", k.perTurn, s.R, k.perTurn)
	if s.R%k.perTurn == 0 {
		w.line("const bool live = true;")
		w.line("const int row = start + group;")
	} else { // a warp stays together: what is beyond the last row computes it again
		w.line("const bool live = start + group < %d;", s.R)
		w.line("const int row = live ? start + group : %d;", s.R-1)
	}
	w.axes(s, s.rows, "row")
	w.divisions(k.body, false)
	if k.blocks*k.perTurn < s.R {
		k.fetchAhead(w)
	}
	for _, p := range k.phases {
		k.phase(w, p)
	}
	w.line("}")
	if len(k.sums) > 0 {
		k.partialSums(w)
	}
	w.line("}")
	return k.body.kernel(w, [2]int{k.blocks, 1}, blockThreads)
}

// fetchAhead asks for the group's next row before the present one is computed, so that it is in the GPU's cache when
// the group begins with it. Few rows are computed at a time where each thread has sums of columns in its registers: the
// memory would wait for the reductions of each.
func (k *rows) fetchAhead(w *writer) {
	s, list := k.shape, slices.Clone(k.phases[0].loads)
	list = slices.DeleteFunc(list, func(a access) bool { return !k.advances(a.at) })
	if len(list) == 0 {
		return
	}
	w.line("if (const int row = start + (int)gridDim.x * %d + group; row < %d) {", k.perTurn, s.R)
	w.axes(s, s.rows, "row")
	w.divisions(k.body, false)
	k.eachChunk(w, func() {
		w.line("const int c = c0;")
		w.axes(s, s.cols, "c")
		w.divisions(k.body, true)
		for _, a := range list {
			condition := ""
			if a.condition != "" {
				condition = "if (" + a.condition + ") "
			}
			w.line("%sfetch_ahead(%s + (%s));", condition, a.pointer, a.at)
		}
	})
	w.line("}")
}

// eachChunk writes a loop over the vectors of a thread, which begin at column c0.
func (k *rows) eachChunk(w *writer, statements func()) {
	s := k.shape
	w.line("#pragma unroll")
	w.line("for (int chunk = 0; chunk < %d; chunk++) {", k.chunks)
	w.line("const int c0 = (chunk * %d + lane) * %d;", k.width, s.V)
	whole := k.chunks*k.width*s.V == s.C
	if !whole {
		w.line("if (c0 < %d) {", s.C)
	}
	statements()
	if !whole {
		w.line("}")
	}
	w.line("}")
}

func (k *rows) phase(w *writer, p *phase) {
	s := k.shape
	for _, statement := range p.row {
		w.line("%s", statement)
	}
	for _, declaration := range p.arrays {
		w.line("%s", declaration)
	}
	if len(p.loads)+len(p.elements)+len(p.stores) > 0 {
		k.eachChunk(w, func() { w.vectors(k.body, p, fmt.Sprintf("chunk * %d", s.V)) })
	}
	for _, r := range p.reductions {
		code := fmt.Sprintf("group_%s<%d>(%s_partial)", r.op, k.width, r.name)
		if r.short {
			code = "rounded(" + code + ")"
		}
		w.line("const %s %s = %s;", r.register, r.name, code)
	}
}

// partialSums adds the column sums of the block's groups and writes them.
func (k *rows) partialSums(w *writer) {
	s := k.shape
	w.line("__shared__ float groups[%d][%d];", k.perTurn, s.C)
	if k.completion != nil {
		k.completion.begin(w)
	}
	for i, n := range k.sums {
		w.line("__syncthreads();")
		w.line("#pragma unroll")
		w.line("for (int j = 0; j < NV; j++) {")
		w.line("const int c = (j / %d * %d + lane) * %d + j %% %d;", s.V, k.width, s.V, s.V)
		w.line("if (c < %d) groups[group][c] = sum%d[j];", s.C, i)
		w.line("}")
		w.line("__syncthreads();")
		if k.completion != nil {
			k.completion.addRows(w, i, "groups", k.perTurn)
			continue
		}
		w.line("for (int c = threadIdx.x; c < %d; c += %d) {", s.C, blockThreads)
		w.line("float x = groups[0][c];")
		w.line("for (int i = 1; i < %d; i++) x = %s_of(x, groups[i][c]);", k.perTurn, n.Op)
		w.leave(k.body, i)
		w.line("}")
	}
	if k.completion != nil {
		k.completion.finish(w)
	}
}
