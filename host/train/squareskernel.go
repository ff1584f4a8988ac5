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

// squaresKernel computes the sum of the squares of bf16 gradients on a GPU.
type squaresKernel struct {
	squares, fold gpu.Kernel
	stream        gpu.Stream
	sums          block // those of squaresThreads threads, and then of each fold but the last
}

// squaresThreads is the number of threads of the pass over the gradients, enough to keep any GPU busy. folds are the
// threads of the passes after it, the last of which leaves one sum.
const squaresThreads = 1024 * kernelThreads

var folds = []int{16 * kernelThreads, 64, 8, 1}

// newSquaresKernel returns the kernel if its results are right. Otherwise the fault is the reason.
func newSquaresKernel(m *memory) (k *squaresKernel, fault, err error) {
	k = &squaresKernel{stream: m.device.Compute}
	fault, err = m.loadKernels(kernels.Squares, map[string]*gpu.Kernel{"squares_bf16": &k.squares, "fold": &k.fold})
	if fault != nil || err != nil {
		return nil, fault, err
	}
	sums := squaresThreads
	for _, n := range folds {
		sums += n
	}
	k.sums = m.block(sums * 4)
	if m.err != nil {
		return nil, nil, m.err
	}
	if fault, err = k.prove(m); fault != nil || err != nil {
		return nil, fault, err
	}
	return k, nil, nil
}

// sum queues the sum of the squares of n elements, a multiple of 8, to an address.
func (k *squaresKernel) sum(grads uint64, n int, to uint64) error {
	sums := uint64(k.sums.dev.Pointer())
	return errors.Join(
		k.stream.Launch(k.squares, squaresThreads/kernelThreads, kernelThreads, grads, sums, uint64(n)),
		k.add(sums, squaresThreads, to))
}

// add queues the sum of so many numbers to an address.
func (k *squaresKernel) add(from uint64, count int, to uint64) error {
	next := uint64(k.sums.dev.Pointer()) + 4*squaresThreads
	var errs []error
	for i, threads := range folds {
		if i == len(folds)-1 {
			next = to
		}
		block := min(threads, kernelThreads)
		errs = append(errs, k.stream.Launch(k.fold, threads/block, block, from, next, uint64(count)))
		from, next, count = next, next+uint64(4*threads), threads
	}
	return errors.Join(errs...)
}

// prove compares the kernel with sums that Go computes: of more elements than there are threads, of few, and of one
// that is not finite.
func (k *squaresKernel) prove(m *memory) (fault, err error) {
	own := newMemory(m.device)
	defer func() { err = errors.Join(err, own.Close()) }()
	const size = 8*squaresThreads + 1024
	parameter := manifest.Parameter{Shape: []int{size}, Compute: manifest.BF16}
	v := own.vector(ortgraphs.NewArena([]manifest.Parameter{parameter}, ortgraphs.Policy{Precision: manifest.BF16}),
		ortgraphs.Gradients)
	out := own.words(1)
	got := newWord[float32](&own, out, manifest.F32)
	if own.err == nil {
		own.err = own.mirror(&v.block)
	}
	if own.err != nil {
		return nil, own.err
	}
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		n    int
		last float32
	}{{size, 1}, {1024, 1}, {size, float32(math.Inf(-1))}, {1024, float32(math.NaN())}} {
		x := make([]float32, size)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		x[c.n-1] = c.last
		v.set(x)
		want := 0.0
		for _, y := range v.numbers(ortgraphs.Range{End: c.n}) {
			want += float64(y) * float64(y)
		}
		at := uint64(out.dev.Pointer()) + uint64(got.at)
		err := errors.Join(own.push(&v.block), own.blank(out), k.sum(v.address(ortgraphs.Range{}), c.n, at),
			own.receive(out), k.stream.Synchronize())
		if err != nil {
			return nil, err
		}
		sum := float64(*got.value)
		if !(math.Abs(sum-want) <= 1e-5*want) && !(want != want && sum != sum) && sum != want {
			return fmt.Errorf("the kernel sums up squares to %g where they are %g", sum, want), nil
		}
	}
	return nil, nil
}
