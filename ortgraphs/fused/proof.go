package fused

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Proof is a graph that computes each region by its kernel and by plain nodes, both from what plain nodes have
// computed. Its outputs are the plain ones, and [fuse.ProofOutput], which Judge reads.
type Proof struct {
	Model   []byte
	Kernels *ort.Kernels
	// Values is the number of elements of the output: 64-bit integers.
	Values int

	judged  []measured
	regions map[int]int // by call
}

// Region returns the region one of whose kernels has not been launched, by the error of the run, or -1.
func (p *Proof) Region(err error) int {
	call := 0
	_, text, _ := strings.Cut(err.Error(), "kernel call ")
	if _, scanned := fmt.Sscanf(text, "%d", &call); scanned != nil {
		return -1
	}
	if region, ok := p.regions[call]; ok {
		return region
	}
	return -1
}

// measured is what a proof compares: a result of a region.
type measured struct {
	region int
	tensor *fuse.Tensor
	blocks int
	// terms and products are the numbers of terms of the longest sum, and of the longest product, of its region.
	terms, products int
	noisy           bool // there is noise in it
	convolved       bool // a library convolves in f32
	// In bf16, the kernel rounds as often as the plain nodes (seldom to another side), or less often.
	seldom, unlike bool
	precise        bool // nothing is rounded to fewer digits than those of f64
}

// proofFunctions are those of the program [cudac.Proof].
type proofFunctions struct {
	fill, same     uintptr
	noise, measure map[shapes.Type]uintptr
	err            error
}

func findProof(programs Programs) (f proofFunctions) {
	find := func(name string) uintptr {
		address, err := programs.Function(cudac.Prelude+cudac.Proof, name, 0)
		f.err = cmp.Or(f.err, err)
		return address
	}
	f.fill, f.same = find(cudac.FillFunction), find(cudac.SameFunction)
	f.noise, f.measure = map[shapes.Type]uintptr{}, map[shapes.Type]uintptr{}
	for _, t := range cudac.ProofTypes {
		f.noise[t], f.measure[t] = find(cudac.NoiseFunction(t)), find(cudac.MeasureFunction(t))
	}
	return f
}

// LinkProof writes the proof of the regions whose programs are loaded, except those that plain accepts. Of many regions
// with the same kernel it computes a few. tf32 says that products of f32 round their operands.
func (p *Plan) LinkProof(plain func(region int) bool, tf32 bool) (*Proof, error) {
	if p.proof.err != nil {
		return nil, p.proof.err
	}
	out := &Proof{regions: map[int]int{}}
	l := newLinking(p)
	l.kernels.Fill = p.proof.fill
	own, index := map[*fuse.Tensor]*fuse.Tensor{}, map[*fuse.Region]int{}
	var run []int
	for i, r := range p.regions {
		index[r] = i
		if p.calls[i] != nil && !plain(i) && p.supplied(i, run) {
			run = append(run, i)
		}
	}
	run = p.samples(run)
	for _, i := range run {
		if len(p.kernels[i].Sums) > 0 {
			l.completed[i] = []int{i}
		}
		for _, t := range p.regions[i].Out {
			if own[t] = t; !t.OfKernels() {
				own[t] = &fuse.Tensor{Name: t.Name + "~kernel", Type: t.Type, Shape: t.Shape}
			}
		}
	}
	if len(run) == 0 {
		return nil, nil
	}
	m, err := p.graph.Proof(p.regions, own, fuse.Prover{
		TF32: tf32,
		Calls: func(r *fuse.Region) []*fuse.Call {
			if _, ok := slices.BinarySearch(run, index[r]); !ok {
				return nil
			}
			first := len(l.kernels.Calls)
			list := l.calls(index[r])
			for i := range list {
				out.regions[first+i] = index[r]
			}
			for _, c := range list {
				c.Out = slices.Clone(c.Out)
				for i, t := range c.Out {
					c.Out[i] = cmp.Or(own[t], t)
				}
			}
			return list
		},
		Noise: l.noise,
		Measure: func(r *fuse.Region, own, plain, noisy *fuse.Tensor, exact bool) *fuse.Call {
			c, blocks := l.measure(own, plain, noisy)
			short := plain.Type == onnxpb.TensorProto_BFLOAT16
			out.judged = append(out.judged, measured{
				index[r], plain, blocks, terms(r, fuse.Reduction), terms(r, fuse.Product), noisy != nil && !exact,
				!short && convolves(p.kernels[index[r]]), short && r.Work.RoundsAsNodes(), p.Unlike(index[r]),
				r.Precise(plain),
			})
			out.Values += c.Shapes[0][0]
			return c
		},
	})
	if err != nil {
		return nil, err
	}
	out.Kernels = l.kernels
	out.Model, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return out, err
}

// Unlike reports whether a region's kernel rounds less often than the plain nodes: those of attention and products, if
// they have numbers in bf16. Then the proof by noise is a suspicion.
func (p *Plan) Unlike(region int) bool {
	r := p.regions[region]
	short := func(t *fuse.Tensor) bool { return t.Type == onnxpb.TensorProto_BFLOAT16 }
	return !r.Work.RoundsAsNodes() && (slices.ContainsFunc(r.In, short) || slices.ContainsFunc(r.Out, short))
}

// noise is the call that moves the numbers of a tensor.
func (l *linking) noise(from, to *fuse.Tensor, n fuse.Noise) *fuse.Call {
	f, size := l.plan.proof.noise[to.Type], to.Elements()
	return l.beside(f, []int{size, n.Units, n.Every}, ceil(size, 1024), to, l.plan.describe(to), from)
}

// Limits of the blocks that compare the results of a region.
const (
	minMeasured = 1024 // elements of a block
	maxBlocks   = 64   // of a result
)

// measure is the call that compares a result of a region.
func (l *linking) measure(own, plain, noisy *fuse.Tensor) (c *fuse.Call, blocks int) {
	n, f, in := plain.Elements(), l.plan.proof.same, []*fuse.Tensor{own, plain}
	if noisy == nil {
		n = plain.Bytes()
	} else {
		f, in = l.plan.proof.measure[plain.Type], append(in, noisy)
	}
	size := max(minMeasured, ceil(n, maxBlocks))
	blocks = max(1, ceil(n, size))
	out := &fuse.Tensor{
		Name: plain.Name + "~measured", Type: onnxpb.TensorProto_INT64, Shape: []int{blocks * cudac.MeasureFields},
	}
	return l.beside(f, []int{n, size}, blocks, out, l.plan.describe(out), in...), blocks
}

// beside is a call of the program [cudac.Proof], which gets a table first.
func (l *linking) beside(
	f uintptr, numbers []int, blocks int, to *fuse.Tensor, as ort.KernelOutput, from ...*fuse.Tensor,
) *fuse.Call {
	table := &fuse.Tensor{Name: "table", Type: onnxpb.TensorProto_INT64, Constant: true, Shape: []int{len(numbers)}}
	for _, x := range numbers {
		table.Data = append(table.Data, float64(x))
	}
	in := append([]*fuse.Tensor{table}, from...)
	launch := ort.KernelLaunch{Function: f, Grid: [3]int{max(1, blocks), 1, 1}, Block: cudac.ProofThreads}
	for i := range len(in) + 1 {
		launch.Arguments = append(launch.Arguments, i)
	}
	call := ort.KernelCall{Inputs: len(in), Outputs: []ort.KernelOutput{as}, Launches: []ort.KernelLaunch{launch}}
	return l.node(call, in, []*fuse.Tensor{to})
}

// describe describes a tensor in its own shape.
func (p *Plan) describe(t *fuse.Tensor) ort.KernelOutput {
	return ort.KernelOutput{DType: dtypes[t.Type], Shape: t.Shape}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// terms is the number of terms of a region's longest sum of a kind.
func terms(r *fuse.Region, kind fuse.Kind) int {
	most := 1
	for _, n := range r.Nodes {
		if n.Kind == kind || kind == fuse.Reduction && n.Kind == fuse.Cumulation {
			most = max(most, n.Terms())
		}
	}
	return most
}
