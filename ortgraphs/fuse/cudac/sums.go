package cudac

import (
	_ "embed"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// Sum is a column sum that a kernel leaves as partial sums.
type Sum struct {
	Out *fuse.Tensor
	Op  string // sum, max or min
	// Partials is the number of partial sums, each of all columns: Columns. First is the place of the first one among
	// those of the kernel.
	Partials, Columns, First int
}

// declareSums declares the sums of one thread.
func (w *writer) declareSums(b *body) {
	for i, n := range b.sums {
		register, _ := held(n.Out[0].Type)
		w.line("%s sum%d[NV];", register, i)
		w.line("#pragma unroll")
		w.line("for (int j = 0; j < NV; j++) sum%d[j] = %s;", i, identity(n.Op, register))
	}
}

// leave writes the statement that leaves the sum x of the block's rows in column c.
func (w *writer) leave(b *body, sum int) {
	t := b.sums[sum].Out[0]
	w.axes(b.shape, b.shape.cols, "c")
	if b.whole {
		w.line("%s = x;", b.result(t))
		return
	}
	w.line("partials[(%d * gridDim.x + blockIdx.x) * %d + (%s)] = x;", sum, b.shape.C,
		flat(b.places.index(b.loops.Of(t)), t.Shape))
}

// left describes the sums that so many blocks leave.
func (b *body) left(blocks int) (list []Sum) {
	if b.whole || b.completion != nil {
		return nil
	}
	for i, n := range b.sums {
		list = append(list, Sum{n.Out[0], n.Op, blocks, b.shape.C, i * blocks * b.shape.C})
	}
	return list
}

// Sums is the program that completes column sums. It is compiled after [Prelude]. Its function has one argument, an
// array of pointers: the table, then those that the table numbers.
//
//go:embed sums.cuh
var Sums string

// SumsFunction is the function of the program Sums.
const SumsFunction = "sums"

// SumsPointers is the length of the array: that of the structure pointers in sums.cuh.
const SumsPointers = 256

// SumsThreads is the number of threads of a block.
const SumsThreads = 1024

// Job is a sum to be completed. Source and Result are the numbers of the pointers to the kernel's partial sums and to
// the result.
type Job struct {
	Sum
	Source, Result int
}

// columnsOfBlock is the number of columns that a block of sums.cuh completes: vectors where they are aligned.
func (j Job) columnsOfBlock() int {
	if j.Columns%4 == 0 && j.First%4 == 0 {
		return 32 * 4
	}
	return 32
}

// SumsTable returns the table of a launch, of 64-bit integers, and the number of its blocks.
func SumsTable(jobs []Job) (table []float64, blocks int) {
	table = append(table, float64(len(jobs)))
	for _, j := range jobs {
		short := 0
		if isShort(j.Out.Type) {
			short = 1
		}
		op := map[string]int{"sum": 0, "max": 1, "min": 2}[j.Op]
		for _, x := range []int{blocks, j.Source, j.First, j.Partials, j.Columns, op, j.Result, short} {
			table = append(table, float64(x))
		}
		blocks += ceil(j.Columns, j.columnsOfBlock())
	}
	return table, blocks
}
