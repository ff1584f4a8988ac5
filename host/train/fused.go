package train

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// adamwKernel is written by scripts/kernels.sh.
//
//go:embed kernels/adamw.ptx
var adamwKernel string

// fusion is a rule's update as one kernel of a GPU: one pass over the vectors, where the graph makes one for each of its operators. The
// graph says what is computed, and the kernel is used when it gives the same.
//
// The kernel has the graph's name. Its arguments are the addresses of weights, gradients and state, the number of elements, which is a
// multiple of 4, the addresses of grad_norm, grad_scale and finite, and then numbers.
type fusion struct {
	ptx     string
	numbers func(p manifest.Optimizer, lr, weightDecay float64, step int64) []uint64
}

// adamwNumbers are what the graph makes of its scalars, in f64 as there.
func adamwNumbers(p manifest.Optimizer, lr, weightDecay float64, step int64) []uint64 {
	f32 := func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	beta1, beta2, t := p.Betas[0], p.Betas[1], float64(step)
	return []uint64{
		math.Float64bits(p.GradClip), f32(1 - beta1), f32(beta2), f32(1 - beta2), f32(math.Sqrt(1 - math.Pow(beta2, t))), f32(p.Eps),
		f32(lr / (1 - math.Pow(beta1, t))), f32(1 - lr*weightDecay),
	}
}

// The shape of a launch: enough threads to keep any GPU busy.
const (
	fusedThreads = 256
	fusedBlocks  = 4096
)

// launch queues the kernel over elements [from, to) of vectors, in the order of its arguments.
func (o *Optimizer) launch(k gpu.Kernel, vectors []block, from, to int, numbers []uint64) error {
	if from == to {
		return nil
	}
	var arguments []uint64
	for _, v := range vectors {
		arguments = append(arguments, uint64(v.dev.Pointer())+4*uint64(from))
	}
	arguments = append(arguments, uint64(to-from))
	for _, at := range []int{o.gradNorm.at, o.scale.at, o.finite.at} {
		arguments = append(arguments, uint64(o.out.dev.Pointer())+uint64(at))
	}
	blocks := min(fusedBlocks, (to-from+4*fusedThreads-1)/(4*fusedThreads))
	return o.device.Compute.Launch(k, blocks, fusedThreads, append(arguments, numbers...)...)
}

// proofs is the number of elements that kernel and graph are compared on.
const proofs = 1 << 14

// fuse makes the rule's kernel and compares it with the graph, of which bind makes an execution over vectors. A fault says why the kernel
// is not used.
func (o *Optimizer) fuse(weightDecay float64, bind func(vectors []block, from, size int) execution) (fault, err error) {
	k, fault := o.device.Context.NewKernel(o.rule.fusion.ptx, o.params.Name)
	if fault != nil {
		return fault, nil
	}
	o.add(k.Close)
	p := proof{Optimizer: o, kernel: k, weightDecay: weightDecay}
	for range 2 + len(o.rule.state) {
		p.vectors = append(p.vectors, o.block(4*proofs))
	}
	p.graph = bind(p.vectors, 0, proofs)
	if o.err != nil {
		return nil, nil
	}
	if p.room, err = o.device.Context.AllocateHost(2 * len(p.vectors) * 4 * proofs); err != nil {
		return nil, err
	}
	if fault, err = p.compare(); fault == nil && err == nil {
		o.kernel = k
	}
	return fault, errors.Join(err, p.room.Close())
}

// proof compares a kernel with its graph.
type proof struct {
	*Optimizer
	kernel      gpu.Kernel
	graph       execution
	weightDecay float64
	vectors     []block        // weights, gradients, state
	room        gpu.HostMemory // for what they hold: before, and behind the update
}

// compare updates the same vectors both ways, with gradients that are clipped and not, and with some that are not finite.
func (p *proof) compare() (fault, err error) {
	before, behind := p.room.Bytes()[:len(p.room.Bytes())/2], p.room.Bytes()[len(p.room.Bytes())/2:]
	random, values := rand.New(rand.NewPCG(3, 4)), ort.View[float32](before)
	for i := range values {
		values[i] = float32(0.1 * random.NormFloat64())
		if i >= 3*proofs { // all state but the first vector is a mean of squares
			values[i] *= values[i]
		}
	}
	const lr, step = 1e-3, 3
	*p.lr.value, *p.step.value = lr, step
	numbers := p.rule.fusion.numbers(p.params, lr, p.weightDecay, step)
	for _, c := range []struct {
		norm, scale float32
		finite      uint8
	}{{1e-3, 1, 1}, {1e3, 0.25, 1}, {float32(math.NaN()), 1, 0}} {
		*p.gradNorm.value, *p.scale.value, *p.finite.value = c.norm, c.scale, c.finite
		if err := errors.Join(p.send(p.in), p.send(p.out)); err != nil {
			return nil, err
		}
		want, err := p.outcome(before, behind, func() error { return p.run(p.graph) })
		if err != nil {
			return nil, err
		}
		got, err := p.outcome(before, behind, func() error { return p.launch(p.kernel, p.vectors, 0, proofs, numbers) })
		if err != nil {
			return nil, err
		}
		for i := range got {
			if d := distance(got[i], want[i]); !(d <= fusedTolerance) {
				return fmt.Errorf("the kernel differs from the graph by %.2g", d), nil
			}
		}
		if c.finite == 0 && !bytes.Equal(behind, before) {
			return errors.New("the kernel takes gradients that are not finite"), nil
		}
	}
	return nil, nil
}

// fusedTolerance bounds the distance of a vector that the kernel gives from the graph's. On the GPUs that were tried it is 0; a compiler that
// divides otherwise may be one rounding apart.
const fusedTolerance = 1e-6

// outcome updates the vectors that before holds, and returns what they become, each apart. behind holds that too.
func (p *proof) outcome(before, behind []byte, update func() error) ([][][]float32, error) {
	var errs []error
	for i, v := range p.vectors {
		errs = append(errs, p.device.Compute.Upload(v.dev, 0, before[4*proofs*i:4*proofs*(i+1)]))
	}
	errs = append(errs, update())
	for i, v := range p.vectors {
		errs = append(errs, p.device.Compute.Download(behind[4*proofs*i:4*proofs*(i+1)], v.dev, 0))
	}
	errs = append(errs, p.device.Compute.Synchronize())
	var out [][][]float32
	for i := range p.vectors {
		out = append(out, [][]float32{append([]float32(nil), ort.View[float32](behind[4*proofs*i:4*proofs*(i+1)])...)})
	}
	return out, errors.Join(errs...)
}
