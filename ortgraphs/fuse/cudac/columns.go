package cudac

import "slices"

// columns is the program of a region that reduces no rows. The threads of a block compute neighbouring vectors of a
// row, and several rows if one is short.
type columns struct {
	*body
	threads, across, down int    // of a block
	blocksPerProcessor    int    // for which there are to be registers; 0 means that the compiler decides
	blocks                [2]int // down, across
}

const (
	// turnThreads limits the threads of a region with column sums: 1,024 for each processor of an H200, and twice as
	// many if there are registers for them. Each block completes its sums, and leaves partial sums, so more blocks than
	// run at a time only do more.
	turnThreads = 132 * 1024
	// narrowLoads is the number of vectors of bf16 up to which the 32 registers that two blocks of 1,024 threads leave
	// each thread of a processor are enough, if it reads nothing else and keeps one sum of each column.
	narrowLoads = 2
	// wideLoads is the number of vectors up to which a thread of a block of 1,024 has the registers for them.
	wideLoads = 4
	// wideSums is the number of sums up to which it has the registers for them.
	wideSums = 32
	// crowdedVector is the size of the vectors of a region with more of either: with 8 elements, a thread has so many
	// registers that a quarter of a processor's threads run at a time, too few to hide how long each instruction takes.
	crowdedVector = 4
	// mostTurns is the number of rows up to which a thread adds numbers in f64, of which there are no partial sums.
	mostTurns = 64
	// wholeColumns is the number of vectors in a row from which the blocks that add all rows fill the processors, so
	// that there are no partial sums: a warp of vectors for each of 132 processors.
	wholeColumns = 132 * 32
)

// crowded reports whether a thread of a region that reduces no rows reads or adds up more vectors than it has registers
// for in a block of 1,024.
func (b *body) crowded() bool {
	return !b.shape.reduces && (len(b.phases[0].loads) > wideLoads || len(b.sums)*b.shape.V > wideSums)
}

func newColumns(b *body, crowded bool) (*Kernel, error) {
	if len(b.phases) > 1 {
		return nil, unsupported("it uses a reduction of rows")
	}
	s := b.shape
	k := &columns{body: b, threads: blockThreads, across: min(s.C/s.V, blockThreads)}
	limit := turnThreads
	if len(b.sums) > 0 {
		k.threads = 1024
		if crowded {
			k.threads = 512
		}
		if k.narrow() {
			k.blocksPerProcessor, limit = 2, 2*turnThreads
		}
		double := isDouble(b.sums[0].Out[0].Type)
		if double || s.C/s.V >= wholeColumns { // one block adds all rows of its columns
			b.whole = true
			k.across = min(max(k.threads/s.R, 32), s.C/s.V)
		} else if b.region.Awaited {
			k.across = k.narrowTile()
		}
		if turns := ceil(s.R, k.threads/k.across); double && turns > mostTurns {
			return nil, unsupported("it adds columns of %d numbers of type DOUBLE", s.R)
		}
	}
	k.down = k.threads / k.across
	k.blocks[1] = ceil(s.C/s.V, k.across)
	k.blocks[0] = ceil(s.R, k.down)
	switch {
	case b.whole:
		k.blocks[0] = 1
	case len(b.sums) > 0:
		k.blocks[0] = min(k.blocks[0], max(1, limit/k.threads/k.blocks[1]))
	default:
		k.blocks[0] = min(k.blocks[0], 1<<20)
	}
	k.completes(k.threads, k.across*s.V, k.blocks)
	return k.kernel(), nil
}

// narrowTile returns how many threads have neighbouring vectors of a row if a node waits for the sums: few, so that few
// blocks have partial sums of the same columns, and more blocks have other columns.
func (k *columns) narrowTile() int {
	vectors := k.shape.C / k.shape.V
	tiles := ceil(vectors, max(ceil(minColumns, k.shape.V), k.threads/k.shape.R))
	return ceil(vectors, tiles)
}

// narrow reports whether a thread needs few registers.
func (k *columns) narrow() bool {
	loads := k.phases[0].loads
	return len(k.sums) == 1 && len(loads) == len(k.inputs) && len(loads) <= narrowLoads &&
		!slices.ContainsFunc(loads, func(a access) bool { return a.stored != "bf16" })
}

func (k *columns) kernel() *Kernel {
	w, s := &writer{}, k.shape
	w.begin(k.body, k.threads, k.blocksPerProcessor)
	w.line("constexpr int NV = %d;", s.V)
	w.line("const int across = threadIdx.x %% %d, down = threadIdx.x / %d;", k.across, k.across)
	w.line("const int c0 = (blockIdx.y * %d + across) * %d;", k.across, s.V)
	w.line("const bool first = across == 0 && blockIdx.y == 0, live = true;")
	w.declareSums(k.body)
	w.line("if (down < %d && c0 < %d) for (int row = blockIdx.x * %d + down; row < %d; row += gridDim.x * %d) {",
		k.down, s.C, k.down, s.R, k.down)
	w.axes(s, s.rows, "row")
	w.divisions(k.body, false)
	p := k.phases[0]
	for _, statement := range p.row {
		w.line("%s", statement)
	}
	w.vectors(k.body, p, "0")
	w.line("}")
	if len(k.sums) > 0 {
		k.partialSums(w)
	}
	w.line("}")
	return k.body.kernel(w, k.blocks, k.threads)
}

// partialSums adds the column sums of the block's rows and writes them.
func (k *columns) partialSums(w *writer) {
	s, wide := k.shape, k.across*k.shape.V
	register, _ := held(k.sums[0].Out[0].Type)
	w.line("__shared__ %s rows[%d][%d];", register, k.down, wide)
	if k.completion != nil {
		k.completion.begin(w)
	}
	for i, n := range k.sums {
		w.line("__syncthreads();")
		w.line("if (down < %d) {", k.down)
		w.line("#pragma unroll")
		w.line("for (int j = 0; j < NV; j++) rows[down][across * %d + j] = sum%d[j];", s.V, i)
		w.line("}")
		w.line("__syncthreads();")
		if k.completion != nil {
			k.completion.addRows(w, i, "rows", k.down)
			continue
		}
		w.line("for (int i = threadIdx.x; i < %d; i += %d) {", wide, k.threads)
		w.line("%s x = rows[0][i];", register)
		w.line("for (int row = 1; row < %d; row++) x = %s_of(x, rows[row][i]);", k.down, n.Op)
		w.line("const int c = blockIdx.y * %d + i;", wide)
		w.line("if (c >= %d) break;", s.C)
		w.leave(k.body, i)
		w.line("}")
	}
	if k.completion != nil {
		k.completion.finish(w)
	}
}
