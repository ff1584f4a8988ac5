package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// awaited is a graph whose nodes wait for column sums of a tensor.
type awaited struct {
	shape, axes []int
	ops         []string
	// rows says that the sums' region reduces rows, too.
	rows bool
	// plain says that no node waits for the sums, which are outputs alone.
	plain bool
	// grid is that of the region's kernel, and completed what completes the sums: threads, sums of a block, blocks and
	// blocks of a group.
	grid      [2]int
	completed string
}

// sum is a list of one operator.
var sum = []string{"ReduceSum"}

// awaitedForms are sums of few rows, which one block has, and of many in one step and in two; of few columns, of
// several blocks, and of numbers that neither blocks nor vectors divide.
var awaitedForms = []awaited{
	{shape: []int{8, 64}, axes: []int{0}, ops: sum, grid: [2]int{1, 1}},
	{shape: []int{130, 128}, axes: []int{0}, ops: sum, grid: [2]int{5, 1}, completed: "1024, 128, 5, 5"},
	{shape: []int{511, 64}, axes: []int{0}, ops: sum, grid: [2]int{8, 1}, completed: "1024, 64, 8, 8"},
	{shape: []int{512, 128}, axes: []int{0}, ops: sum, grid: [2]int{16, 1}, completed: "1024, 128, 16, 16"},
	{shape: []int{513, 128}, axes: []int{0}, ops: sum, grid: [2]int{17, 1}, completed: "1024, 128, 17, 17"},
	{shape: []int{8448, 32}, axes: []int{0}, ops: sum, grid: [2]int{66, 1}, completed: "1024, 32, 66, 66"},
	{
		shape: []int{8448, 32}, axes: []int{0}, ops: []string{"ReduceSum", "ReduceMax"}, grid: [2]int{66, 1},
		completed: "1024, 64, 66, 66",
	},
	{
		shape: []int{3430, 128}, axes: []int{0}, ops: []string{"ReduceSum", "ReduceSum", "ReduceMin"},
		grid: [2]int{108, 1}, completed: "1024, 384, 108, 11",
	},
	{
		shape: []int{3, 90, 400}, axes: []int{1}, ops: []string{"ReduceMax", "ReduceSum"}, grid: [2]int{3, 10},
		completed: "1024, 240, 3, 3",
	},
	{shape: []int{700, 130}, axes: []int{0}, ops: sum, grid: [2]int{23, 2}, completed: "1024, 66, 23, 23"},
	{shape: []int{7000, 7}, axes: []int{0}, ops: sum, grid: [2]int{48, 1}, completed: "1024, 7, 48, 48"},
	{shape: []int{4100, 3}, axes: []int{0}, ops: sum, grid: [2]int{13, 1}, completed: "1024, 3, 13, 13"},
	{shape: []int{2, 40, 3, 128}, axes: []int{0, 1}, ops: sum, grid: [2]int{3, 3}, completed: "1024, 128, 3, 3"},
	{shape: []int{40, 96}, axes: []int{0}, ops: sum, rows: true, grid: [2]int{5, 1}, completed: "256, 96, 5, 5"},
	{
		shape: []int{2112, 160}, axes: []int{0}, ops: sum, rows: true, grid: [2]int{264, 1},
		completed: "256, 160, 264, 17",
	},
	{shape: []int{60, 1100}, axes: []int{0}, ops: sum, rows: true, grid: [2]int{60, 1}, completed: "256, 1100, 60, 8"},
	{shape: []int{80, 3000}, axes: []int{0}, ops: sum, rows: true, grid: [2]int{80, 1}}, // which would take long
	{shape: []int{700, 130}, axes: []int{0}, ops: sum, plain: true, grid: [2]int{47, 1}},
}

func (a awaited) model() *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("awaited")}}
	b.graph.Input = append(b.graph.Input, info("x", a.shape))
	y := b.add("Tanh", "x")
	if a.rows {
		y = b.add("Sub", y, b.add("ReduceMean", y, b.numbers(len(a.shape)-1)))
	}
	var outputs []string
	z := y
	for i, op := range a.ops {
		of := y
		if i == 1 {
			of = b.add("Mul", y, "x")
		}
		s := b.add(op, of, b.numbers(a.axes...))
		outputs = append(outputs, s)
		if !a.plain && i != 1 { // the second one is not read, but completed like the others
			z = b.add("Add", z, s)
		}
	}
	return b.outputs(append(outputs, z)...)
}

// awaitedSums adds the regions of all forms.
func (k *kernels) awaitedSums(t *testing.T, short bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(12, 1))
	for _, a := range awaitedForms {
		model := a.model()
		if short {
			toShort(model)
		}
		k.model(t, model, random.NormFloat64)
	}
}

var completing = regexp.MustCompile(`complete<([\d, ]*)>\(`)

// TestAwaitedSums: where a node waits for column sums of a region, the blocks of the region's kernel that arrive last
// complete them, with the same bits whatever the order of the blocks, and leave the counters at zero.
func TestAwaitedSums(t *testing.T) {
	for _, a := range awaitedForms {
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		at := slices.IndexFunc(regions, func(r *fuse.Region) bool { return r.ColumnSums > 0 })
		if at < 0 || regions[at].Awaited == a.plain {
			t.Fatalf("%v: no sums are awaited", a)
		}
		k, err := cudac.Generate(regions[at], cudac.Target{})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		if m := completing.FindStringSubmatch(k.Source); m != nil {
			found = m[1]
		}
		whole := a.grid[0] == 1
		if found != a.completed || k.Launches[0].Blocks != a.grid || (len(k.Sums) > 0) != (found == "" && !whole) {
			t.Errorf("%v: %d blocks complete %q, and %d sums are left", a, k.Launches[0].Blocks, found, len(k.Sums))
		}
	}
	for _, short := range []bool{false, true} {
		t.Run(fmt.Sprintf("bf16 %t", short), func(t *testing.T) {
			t.Parallel()
			var k kernels
			k.awaitedSums(t, short)
			k.complete(t, 2*len(awaitedForms)-1)
			within := 2e-6
			if short {
				within = 1e-2
			}
			k.check(t, &emulation{again: true}, within)
		})
	}
}
