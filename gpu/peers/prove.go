package peers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/kernels"
)

// proofLimit is how long a round of a proof may take: it has some hundred kilobytes. GPUs that do not reach each other
// although the driver says so would wait for ever.
const proofLimit = 20 * time.Second

// proved is how many values of each type a proof sums: more than a launch has threads, times what each reads at once.
const proved = 8*SumThreads + 1024

// prove makes two rounds with numbers of which each rank knows those of all, and compares every bit of the sums. The
// window must have room for them.
func (w *Window) prove() (err error) {
	p := proof{Window: w}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.open(); err != nil {
		return err
	}
	var fault error
	for round := range 2 { // both in any case: the others wait for what is sent
		if err := p.round(round); err != nil {
			return fmt.Errorf("a trial: %w", err)
		}
		fault = cmp.Or(fault, p.check(round))
	}
	return fault
}

// proof is the memory of a proof: values in f32 and in bf16, a weight, and the squares of each thread.
type proof struct {
	*Window
	stream  gpu.Stream
	card    gpu.Memory
	host    gpu.HostMemory
	wide    []float32 // of host, as the others
	narrow  []uint16
	weight  *float32
	squares []float32
	n       int // values of each type, as the window has room for
}

const proofWeight = 256 // bytes, for the weight

// period is after how many values they repeat.
const period = 1 << 12

// proofBytes is the memory of so many values of each type.
func proofBytes(n int) int { return n*(4+2) + proofWeight + 4*SumThreads }

func (p *proof) open() (err error) {
	p.n = min(proved, (p.stride-proofWeight)/(4+2)/64*64)
	if p.n <= 0 {
		return fmt.Errorf("a window of %d bytes", p.stride)
	}
	if p.stream, err = p.context.NewStream(); err != nil {
		return err
	}
	if p.card, err = p.context.Allocate(proofBytes(p.n)); err != nil {
		return err
	}
	if p.host, err = p.context.AllocateHost(proofBytes(p.n)); err != nil {
		return err
	}
	at := unsafe.Pointer(&p.host.Bytes()[0])
	p.wide, p.narrow = unsafe.Slice((*float32)(at), p.n), unsafe.Slice((*uint16)(unsafe.Add(at, 4*p.n)), p.n)
	p.weight = (*float32)(unsafe.Add(at, (4+2)*p.n))
	p.squares = unsafe.Slice((*float32)(unsafe.Add(at, (4+2)*p.n+proofWeight)), SumThreads)
	return nil
}

func (p *proof) close() (err error) {
	for _, c := range []interface{ Close() error }{p.stream, p.card, p.host} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// values are those of a rank in a round.
func (p *proof) values(rank, round int) (wide []float32, narrow []uint16, weight float32) {
	random := rand.New(rand.NewPCG(uint64(rank), uint64(round)))
	inf := float32(math.Inf(1))
	special := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, 3e38}
	wide, narrow = make([]float32, period), make([]uint16, period)
	for i := range period {
		if wide[i] = float32(random.NormFloat64()); i%37 == rank {
			wide[i] = special[i/37%len(special)]
		}
		narrow[i] = uint16(math.Float32bits(wide[i]) >> 16)
	}
	weight = []float32{613, 0.3, 0, 17}[(rank+round)%4]
	return wide, narrow, weight
}

// round makes a round.
func (p *proof) round(round int) error {
	wide, narrow, weight := p.values(p.rank, round)
	for i := range p.n {
		p.wide[i], p.narrow[i] = wide[i%period], narrow[i%period]
	}
	*p.weight = weight
	n, weightAt := p.n, (4+2)*p.n
	at := uint64(p.card.Pointer())
	if err := errors.Join(
		p.stream.Upload(p.card, 0, p.host.Bytes()),
		p.Begin(p.stream),
		p.Send(p.stream, p.card, 0, 0, 4*n), p.Send(p.stream, p.card, 4*n, 4*n, 2*n+proofWeight), p.Tell(p.stream),
		p.Wait(p.stream),
		p.Sum(p.stream, Part{Address: at, Elements: n, Weight: at + uint64(weightAt), WeightAt: weightAt}),
		p.Sum(p.stream, Part{
			Address: at + uint64(4*n), Elements: n, BF16: true, At: 4 * n, Weight: at + uint64(weightAt),
			WeightAt: weightAt, Squares: at + uint64(weightAt+proofWeight),
		}),
		p.Sum(p.stream, Part{Address: at + uint64(weightAt), Elements: 4, At: weightAt}),
		p.Took(p.stream),
		p.stream.Download(p.host.Bytes(), p.card, 0),
	); err != nil {
		return err
	}
	return p.await()
}

// await waits for the stream, but not for ever.
func (p *proof) await() error {
	for began := time.Now(); ; time.Sleep(100 * time.Microsecond) {
		done, err := p.stream.Idle()
		if done || err != nil {
			return err
		}
		if time.Since(began) > proofLimit {
			p.Abort()
			return errors.Join(fmt.Errorf("nothing has come from another GPU in %v", proofLimit),
				p.stream.Synchronize())
		}
	}
}

// check compares the sums with those that Go computes.
func (p *proof) check(round int) error {
	wide, narrow, weights := make([]float32, period), make([]float32, period), float32(0)
	for rank := range p.size {
		x, y, weight := p.values(rank, round)
		for i := range period {
			wide[i] += kernels.Weighed(x[i], weight)
			narrow[i] += kernels.Weighed(kernels.F32(y[i]), weight)
		}
		weights += weight
	}
	for i := range p.n {
		if want := wide[i%period]; !same(p.wide[i], want) {
			return fmt.Errorf("the sum of %d GPUs in f32 is %g, not %g", p.size, p.wide[i], want)
		}
		got, want := kernels.F32(p.narrow[i]), kernels.F32(kernels.BF16(narrow[i%period]))
		if !same(got, want) {
			return fmt.Errorf("the sum of %d GPUs in bf16 is %g, not %g", p.size, got, want)
		}
	}
	if *p.weight != weights {
		return fmt.Errorf("the sum of the weights is %g, not %g", *p.weight, weights)
	}
	return p.checkSquares()
}

// checkSquares compares the squares of each thread: thread i adds up those of eight values in a row, the i-th eight of
// each pass of all threads.
func (p *proof) checkSquares() error {
	for i, got := range p.squares {
		var want float64
		for at := 8 * i; at < p.n; at += 8 * SumThreads {
			for _, x := range p.narrow[at : at+8] {
				want += float64(kernels.F32(x)) * float64(kernels.F32(x))
			}
		}
		right := math.Abs(float64(got)-want) <= 2e-6*want
		if want != want || want > math.MaxFloat32 {
			right = got-got != 0 // no number, or infinite
		}
		if !right {
			return fmt.Errorf("the sum of squares of thread %d is %g, not %g", i, got, want)
		}
	}
	return nil
}

// same reports whether two numbers have the same bits, or both are no number.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}
