package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// weighKernel multiplies gradients by the loss weight of their batch on a GPU.
type weighKernel struct{ f32, bf16 gpu.Kernel }

// weighBlocks times kernelThreads is enough to keep any GPU busy.
const weighBlocks = 1024

// newWeighKernel returns the kernel if its results are right. Otherwise the fault is the reason.
func newWeighKernel(m *memory) (k *weighKernel, fault, err error) {
	k = new(weighKernel)
	fault, err = m.loadKernels(kernels.Weigh, map[string]*gpu.Kernel{"weigh": &k.f32, "weigh_bf16": &k.bf16})
	if fault != nil || err != nil {
		return nil, fault, err
	}
	for _, t := range []manifest.DType{manifest.F32, manifest.BF16} {
		if fault, err = k.prove(m, t); fault != nil || err != nil {
			return nil, fault, err
		}
	}
	return k, nil, nil
}

// weigh queues on a stream the multiplication of a part by the weight at an address.
func (k *weighKernel) weigh(on gpu.Stream, p Part, weight uint64) error {
	kernel, width := k.f32, 4*kernelThreads
	if p.DType == manifest.BF16 {
		kernel, width = k.bf16, 8*kernelThreads
	}
	blocks := min(weighBlocks, (p.Elements+width-1)/width)
	return on.Launch(kernel, blocks, kernelThreads, p.Address, weight, uint64(p.Elements))
}

// prove compares every bit with what Go computes: of more elements than there are threads, and of few, with values that
// are 0, tiny and not finite. The payload of a NaN does not count.
func (k *weighKernel) prove(m *memory, t manifest.DType) (fault, err error) {
	own := newMemory(m.device)
	defer func() { err = errors.Join(err, own.Close()) }()
	const size = 8*weighBlocks*kernelThreads + 1024
	parameter := manifest.Parameter{Shape: []int{size}, Compute: t}
	v := own.vector(ortgraphs.NewArena([]manifest.Parameter{parameter}, ortgraphs.Policy{Precision: t}),
		ortgraphs.Gradients)
	in := own.words(1)
	weight := newWord[float32](&own, in, manifest.F32)
	if own.err == nil {
		own.err = own.mirror(&v.block)
	}
	if own.err != nil {
		return nil, own.err
	}
	inf, allBits := float32(math.Inf(1)), math.Float32frombits(math.MaxInt32) // a NaN that rounding would make -0
	special := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, 3e38}
	random := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		n      int
		weight float32
	}{{size, 613}, {1024, 0.3}, {1024, 0}, {1024, allBits}} {
		x := make([]float32, size)
		for i := range x {
			if x[i] = float32(random.NormFloat64()); i%37 == 0 {
				x[i] = special[i/37%len(special)]
			}
		}
		v.set(x)
		before := v.numbers(ortgraphs.Range{End: size})
		*weight.value = c.weight
		part := v.part(v.span(ortgraphs.Range{End: c.n}))
		if err := errors.Join(own.push(&v.block), own.send(in), k.weigh(m.device.Compute, part, in.one(weight).Address),
			own.pull(&v.block)); err != nil {
			return nil, err
		}
		for i, got := range v.numbers(ortgraphs.Range{End: size}) {
			want := before[i]
			if i < c.n {
				want = inType(kernels.Weighed(before[i], c.weight), t)
			}
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				return fmt.Errorf("the kernel weighs %g with %g to %g", before[i], c.weight, got), nil
			}
		}
	}
	return nil, nil
}

// inType returns a number as a type has it.
func inType(x float32, t manifest.DType) float32 {
	if t == manifest.BF16 {
		return kernels.F32(kernels.BF16(x))
	}
	return x
}
