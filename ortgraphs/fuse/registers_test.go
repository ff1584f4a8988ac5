package fuse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// divided is a graph of one region in bf16, and how its kernel divides the work.
type divided struct {
	name  string
	shape []int
	model func(b *builder, in []string) (out []string)
	// in is the number of inputs, all of that shape.
	in      int
	blocks  [2]int
	threads int
	// has are pieces of the source that occur once each, hasNot those that do not occur.
	has, hasNot []string
	// large says that the region is too large to be run by the emulation.
	large bool
}

func added(b *builder, in []string) string {
	x := in[0]
	for _, y := range in[1:] {
		x = b.add("Add", x, y)
	}
	return x
}

// columnSum adds up the inputs and then their columns.
func columnSum(b *builder, in []string) []string {
	return []string{b.add("ReduceSum", added(b, in), b.numbers(0))}
}

// centered subtracts the mean of each row.
func centered(b *builder, in []string) []string {
	return []string{b.add("Sub", in[0], b.add("ReduceMean", in[0], b.numbers(1)))}
}

var dividedForms = []divided{
	{
		name: "four vectors", shape: []int{300, 128}, in: 4, model: columnSum, blocks: [2]int{5, 1}, threads: 1024,
		has: []string{"constexpr int NV = 8;"},
	},
	{
		name: "five vectors", shape: []int{300, 128}, in: 5, model: columnSum, blocks: [2]int{19, 1}, threads: 512,
		has: []string{"constexpr int NV = 4;"},
	},
	{
		name: "two vectors of many rows", shape: []int{1 << 18, 64}, in: 2, model: columnSum, blocks: [2]int{264, 1},
		threads: 1024, large: true,
	},
	{
		name: "three vectors of many rows", shape: []int{1 << 18, 64}, in: 3, model: columnSum, blocks: [2]int{132, 1},
		threads: 1024, large: true,
	},
	{
		name: "few rows", shape: []int{41, 512}, in: 1, model: centered, blocks: [2]int{41, 1}, threads: 256,
		has: []string{"group_sum<256>"},
	},
	{
		name: "few short rows", shape: []int{41, 248}, in: 1, model: centered, blocks: [2]int{6, 1}, threads: 256,
		hasNot: []string{"group_sum<256>"},
	},
	{
		name: "more rows", shape: []int{1057, 256}, in: 1, model: centered, blocks: [2]int{133, 1}, threads: 256,
		has: []string{"group_sum<32>"},
	},
	{
		name: "sine and cosine", shape: []int{9, 256}, in: 2, blocks: [2]int{2, 1}, threads: 256,
		model: func(b *builder, in []string) []string {
			angle := b.add("Mul", in[0], in[1])
			return []string{b.add("Mul", b.add("Sin", angle), b.add("Cos", angle)), b.add("Cos", angle)}
		},
		has: []string{"sine_cosine_of("}, hasNot: []string{"sinf(", "cosf("},
	},
}

func (d *divided) build() *onnxpb.ModelProto {
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("divided")}}
	var in []string
	for i := range d.in {
		in = append(in, fmt.Sprintf("x%d", i))
		b.graph.Input = append(b.graph.Input, info(in[i], d.shape))
	}
	model := b.outputs(d.model(b, in)...)
	toShort(model)
	return model
}

// TestRegisters: how many threads compute a region follows from how much each keeps in registers, and the kernels
// compute what the interpreter does.
func TestRegisters(t *testing.T) {
	var k kernels
	random := rand.New(rand.NewPCG(22, 1))
	for i := range dividedForms {
		d := &dividedForms[i]
		model := d.build()
		_, _, regions := partition(t, model, shapes.Sizes{})
		regions = slices.DeleteFunc(regions, func(r *fuse.Region) bool { return len(r.Out) == 0 })
		if len(regions) != 1 {
			t.Fatalf("%s: %d regions", d.name, len(regions))
		}
		kernel, err := cudac.Generate(regions[0], cudac.Target{})
		if err != nil {
			t.Fatal(d.name, err)
		}
		if l := kernel.Launches[0]; l.Blocks != d.blocks || l.Threads != d.threads {
			t.Errorf("%s: %v blocks of %d, want %v of %d", d.name, l.Blocks, l.Threads, d.blocks, d.threads)
		}
		for _, piece := range d.has {
			if n := strings.Count(kernel.Source, piece); n != 1 {
				t.Errorf("%s: %q %d times:\n%s", d.name, piece, n, kernel.Source)
			}
		}
		for _, piece := range d.hasNot {
			if strings.Contains(kernel.Source, piece) {
				t.Errorf("%s: %q:\n%s", d.name, piece, kernel.Source)
			}
		}
		if !d.large {
			k.model(t, model, random.NormFloat64)
		}
	}
	k.check(t, &emulation{}, 1e-2)
}
