package cudac

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// The counters of complete.cuh are in the module: all of them are 0 when it is loaded, and after each launch. That is
// enough because no two launches of a program overlap, even if two regions have the same program: the sessions that
// launch it, for training, proofs and measurements, queue it on the one stream of their device and run one at a time.
// What a CUDA graph replays ran one after another when it was captured.
//
//go:embed complete.cuh
var completeTemplates string

// completion is how a kernel completes its column sums: its blocks leave partial sums in scratch memory, and the last
// ones add them up. A launch of its own would take longer where a node waits for the sums.
type completion struct {
	*body
	threads, wide int    // of a block: threads and columns
	blocks        [2]int // of the kernel: down, across
	group         int    // of the blocks down
}

const (
	// mostAtOnce is the number of bytes up to which one block reads all partial sums: a multiprocessor reads some 100
	// GB/s from the second-level cache, and a second step takes 1.5 us or more.
	mostAtOnce = 160 << 10
	// mostInSteps is the number of bytes that a block may read in both steps. With more, they take longer than the
	// program Sums, which divides the columns.
	mostInSteps = 192 << 10
)

// completes makes the blocks of a kernel complete the column sums if a node waits for one of them. Of the 48 KiB of
// shared memory of a launch, the parts take 1 KiB beside a row, which has at most 4,096 columns and so 16 KiB, or 4 KiB
// beside the 32 KiB of a region that reduces no rows.
func (b *body) completes(threads, wide int, blocks [2]int) {
	switch {
	case b.whole || len(b.sums) == 0:
		return
	case blocks[0] == 1:
		b.whole = true
		return
	case !b.region.Awaited:
		return
	}
	c := &completion{b, threads, wide, blocks, blocks[0]}
	if c.bytes(blocks[0]) > mostAtOnce {
		c.group = int(math.Ceil(math.Sqrt(float64(blocks[0]))))
		if c.bytes(c.group+c.groups()) > mostInSteps {
			return
		}
	}
	b.completion = c
}

// items is the number of partial sums of a block.
func (c *completion) items() int { return len(c.sums) * c.wide }

func (c *completion) bytes(blocks int) int { return 4 * blocks * c.items() }

func (c *completion) groups() int { return ceil(c.blocks[0], c.group) }

// counters is how many there are for the blocks of the same columns.
func (c *completion) counters() int {
	if c.groups() == 1 {
		return 1
	}
	return c.groups() + 1
}

// declare writes what stands before the kernel.
func (c *completion) declare(w *writer) {
	w.WriteString(completeTemplates)
	w.line("__device__ unsigned arrived[%d];", c.counters()*c.blocks[1])
}

// begin writes where the block's partial sums are, and what its threads add up together.
func (c *completion) begin(w *writer) {
	w.line("__shared__ float parts[%d];", c.threads)
	w.line("float *const all = partials + blockIdx.y * %d, *const own = all + blockIdx.x * %d;",
		c.blocks[0]*c.items(), c.items())
}

// addRows writes how the threads add up rows of shared memory, which are those of one sum, as the block's partial sums.
func (c *completion) addRows(w *writer, sum int, array string, rows int) {
	w.line("add_rows<%d, %d>(parts, %d, [&](int row, int i) { return %s[row][i]; },", c.threads, c.wide, rows,
		array)
	w.line("\t[](int, float a, float b) { return %s_of(a, b); }, [&](int i, float x) { own[%d + i] = x; });",
		c.sums[sum].Op, sum*c.wide)
}

// finish writes how the last blocks complete the sums.
func (c *completion) finish(w *writer) {
	w.line("complete<%d, %d, %d, %d>(parts, all, arrived + blockIdx.y * %d,", c.threads, c.items(), c.blocks[0],
		c.group, c.counters())
	w.line("\t[](int i, float a, float b) { return %s; },", c.combined())
	w.line("\t[&](int i, float x) {")
	w.line("const int c = blockIdx.y * %d + i %% %d;", c.wide, c.wide)
	w.line("if (c >= %d) return;", c.shape.C)
	w.axes(c.shape, c.shape.cols, "c")
	for i, n := range c.sums {
		w.line("if (i / %d == %d) %s = x;", c.wide, i, c.result(n.Out[0]))
	}
	w.line("});")
}

// combined is the code that combines numbers a and b of partial sum i.
func (c *completion) combined() string {
	code := &strings.Builder{}
	for i, n := range c.sums {
		switch last := i == len(c.sums)-1; {
		case last:
			fmt.Fprintf(code, "%s_of(a, b)", n.Op)
		case c.sums[i+1].Op != n.Op:
			fmt.Fprintf(code, "i < %d ? %s_of(a, b) : ", (i+1)*c.wide, n.Op)
		}
	}
	return code.String()
}

// result is the element of a column sum at a place.
func (b *body) result(t *fuse.Tensor) string {
	return fmt.Sprintf("o%d[%s]", slices.Index(b.region.Out, t), flat(b.places.index(b.loops.Of(t)), t.Shape))
}

// scratch is the size of all partial sums in bytes.
func (c *completion) scratch() int { return c.bytes(c.blocks[0]) * c.blocks[1] }
