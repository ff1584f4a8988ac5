package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// updateKernel is the update of a rule as one kernel on a GPU: one pass over the vectors, where the graph makes one
// pass per operator. The graph defines the result, and the kernel is used if its bits are the same.
//
// The kernel has the graph's name, followed by "_copy" if it writes bf16 copies of the weights, and by "_bf16" if the
// gradients are bf16. Its arguments are the addresses of weights, gradients, state and copies, the number of elements,
// which is a multiple of 4, the addresses of grad_norm, grad_scale and finite, and then numbers.
type updateKernel struct {
	ptx []byte
	// numbers appends the kernel's last arguments.
	numbers func(to []uint64, p manifest.Optimizer, lr, weightDecay float64, step int64) []uint64
	// draw draws the state of an element for the comparison of kernel and graph.
	draw func(r *rand.Rand, state []float32)
}

// adamwNumbers are the values that the graph computes from its scalars, in f64 as there.
func adamwNumbers(to []uint64, p manifest.Optimizer, lr, weightDecay float64, step int64) []uint64 {
	f32 := func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	beta1, beta2, t := p.Betas[0], p.Betas[1], float64(step)
	return append(to,
		math.Float64bits(p.GradClip), f32(1-beta1), f32(beta2), f32(1-beta2), f32(math.Sqrt(1-math.Pow(beta2, t))),
		f32(p.Eps), f32(lr/(1-math.Pow(beta1, t))), f32(1-lr*weightDecay))
}

// drawAdamW draws means of gradients and of their squares, sometimes zero as before the first step.
func drawAdamW(r *rand.Rand, state []float32) {
	state[0], state[1] = 0, 0
	if r.IntN(4) > 0 {
		v := r.NormFloat64() * math.Pow(10, float64(-r.IntN(10))) // down to where eps matters
		state[0], state[1] = float32(v*r.Float64()), float32(v*v)
	}
}

// kernel is an updateKernel with its vectors.
type kernel struct {
	gpu.Kernel
	*updateKernel
	stream    gpu.Stream
	vectors   []vector // weights, gradients, state, copies
	words     [3]uint64
	arguments []uint64
}

// kernelThreads times kernelBlocks is enough to keep any GPU busy. A block of threads updates kernelWidth elements at a
// time: each thread loads four at once.
const (
	kernelThreads = 256
	kernelBlocks  = 4096
	kernelWidth   = 4 * kernelThreads
)

// kernelName returns the name of an optimizer's kernel for such vectors.
func kernelName(optimizer string, f forms) string {
	if f.copies {
		optimizer += "_copy"
	}
	if f.gradients {
		optimizer += "_bf16"
	}
	return optimizer
}

func newKernel(k gpu.Kernel, u *updateKernel, stream gpu.Stream, v vectors, s *scalars) *kernel {
	word := func(at int) uint64 { return uint64(s.out.dev.Pointer()) + uint64(at) }
	return &kernel{Kernel: k, updateKernel: u, stream: stream, vectors: v.list(), words: [3]uint64{
		word(s.gradNorm.at), word(s.scale.at), word(s.finite.at),
	}}
}

// update queues the update of a range, with at most so many blocks of threads.
func (k *kernel) update(
	over ortgraphs.Range, blocks int, p manifest.Optimizer, lr, weightDecay float64, step int64,
) error {
	a := k.arguments[:0]
	for _, v := range k.vectors {
		a = append(a, v.address(over))
	}
	a = append(append(a, uint64(over.Len())), k.words[:]...)
	k.arguments = k.numbers(a, p, lr, weightDecay, step)
	return k.stream.Launch(k.Kernel, min(blocks, (over.Len()+kernelWidth-1)/kernelWidth), kernelThreads, k.arguments...)
}

// useKernels selects kernels for the updates if their results equal the graph's. Otherwise the fault is the reason.
func (o *Optimizer) useKernels() (fault, err error) {
	module, err := o.device.Context.NewModule(o.rule.kernel.ptx)
	if errors.Is(err, gpu.ErrNoKernel) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	o.add(module.Close)
	made := map[forms]*kernel{}
	for _, s := range o.segments {
		if made[s.forms] != nil {
			continue
		}
		k, err := module.Kernel(kernelName(o.params.Name, s.forms))
		if errors.Is(err, gpu.ErrNoKernel) {
			return err, nil
		}
		if err != nil {
			return nil, err
		}
		if fault, err := prove(o.device, o.rule, o.params, s.forms, k); fault != nil || err != nil {
			return fault, err
		}
		v := o.vectors()
		if !s.copies {
			v.copies = vector{}
		}
		made[s.forms] = newKernel(k, o.rule.kernel, o.device.Compute, v, &o.scalars)
	}
	o.kernels = made
	return nil, nil
}

// proofs is the number of elements in the comparison of kernel and graph: several per thread of the launches.
const proofs = 1 << 14

// proof is an update by both: early and late, with and without decay, with gradients that are clipped, not clipped, and
// not finite.
type proof struct {
	lr, decay   float64
	step        int64
	norm, scale float32
	finite      uint8
}

var toProve = []proof{
	{1e-3, 0.01, 1, 1e-3, 1, 1}, {1, 0, 2, 1e3, 0.25, 1}, {1e-4, 0.1, 100000, 3, 1, 1},
	{1e-3, 0.01, 3, float32(math.NaN()), 1, 0},
}

// newProof allocates vectors of proofs elements in the forms.
func newProof(m *memory, r rule, f forms) vectors {
	parameter := manifest.Parameter{Shape: []int{proofs}}
	policy := ortgraphs.Policy{Precision: manifest.BF16}
	if f.copies {
		parameter.Compute = manifest.BF16
	}
	if !f.gradients {
		policy.Gradients = map[string]manifest.DType{parameter.Name: manifest.F32}
	}
	arena := ortgraphs.NewArena([]manifest.Parameter{parameter}, policy)
	v := vectors{weights: m.vector(arena, ortgraphs.Weights), grads: m.vector(arena, ortgraphs.Gradients)}
	for range r.state {
		v.state = append(v.state, m.vector(arena, ortgraphs.State))
	}
	if f.copies {
		v.copies = m.vector(arena, ortgraphs.Copies)
	}
	return v
}

// prove compares a rule's kernel with its graph, on synthetic vectors, and releases them.
func prove(d Device, r rule, p manifest.Optimizer, f forms, made gpu.Kernel) (fault, err error) {
	m := newMemory(d)
	defer func() { err = errors.Join(err, m.Close()) }()
	if p.GradClip == 0 {
		p.GradClip = 1 // so that the kernel clips, too
	}
	s := newScalars(&m, r, p, 1, 0)
	decay := newWord[float64](&m, s.in, manifest.F64)
	v := newProof(&m, r, f)
	whole := ortgraphs.Range{End: proofs}
	execution := s.bind(&m, graph{p.Name, f}.load(&m, 1, false), r, rates{s.lr.tensor, decay.tensor}, v, f, whole)
	if m.err != nil {
		return nil, m.err
	}
	k := newKernel(made, r.kernel, d.Compute, v, &s)
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range toProve {
		*s.lr.value, *s.step.value, *decay.value = c.lr, c.step, c.decay
		*s.gradNorm.value, *s.scale.value, *s.finite.value = c.norm, c.scale, c.finite
		before := c.draw(random, r)
		want, err := v.updated(&m, &s, before, func() error { return m.run(execution) })
		if err != nil {
			return nil, err
		}
		got, err := v.updated(&m, &s, before, func() error { // in parts, with so few threads that each loops
			const part = proofs / 4
			first, rest := ortgraphs.Range{End: part}, ortgraphs.Range{Start: part, End: proofs}
			return errors.Join(k.update(first, 1, p, c.lr, c.decay, c.step),
				k.update(rest, 5, p, c.lr, c.decay, c.step))
		})
		if err != nil {
			return nil, err
		}
		for i := range got {
			for n := range got[i] {
				if math.Float32bits(got[i][n]) != math.Float32bits(want[i][n]) {
					return fmt.Errorf("the kernel computes %g where the graph computes %g", got[i][n], want[i][n]), nil
				}
			}
		}
	}
	return nil, nil
}

// draw draws weights, gradients and state; copies are the weights'.
func (c *proof) draw(random *rand.Rand, r rule) [][]float32 {
	out := make([][]float32, 2+len(r.state))
	for i := range out {
		out[i] = make([]float32, proofs)
	}
	notFinite := [...]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	state := make([]float32, len(r.state))
	for i := range proofs {
		out[0][i], out[1][i] = float32(random.NormFloat64()),
			float32(random.NormFloat64()*math.Pow(10, float64(-random.IntN(12))))
		if c.finite == 0 && i%3 == 0 {
			out[1][i] = notFinite[i/3%3]
		}
		r.kernel.draw(random, state)
		for n := range state {
			out[2+n][i] = state[n]
		}
	}
	return append(out, out[0])
}

// updated returns the vectors after an update.
func (v vectors) updated(m *memory, s *scalars, before [][]float32, update func() error) ([][]float32, error) {
	all := v.list()
	for i := range all {
		if err := m.mirror(&all[i].block); err != nil {
			return nil, err
		}
		all[i].set(before[i])
		if err := m.push(&all[i].block); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(m.send(s.in), m.send(s.out), update()); err != nil {
		return nil, err
	}
	out := make([][]float32, len(all))
	for i := range all {
		if err := m.pull(&all[i].block); err != nil {
			return nil, err
		}
		out[i] = all[i].numbers(all[i].arena.Trained())
	}
	return out, nil
}
