package train

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Prepared is the result of Prepare.
type Prepared struct {
	// Graphs is the number of CUDA graphs that steps replay; 0 if steps run eagerly.
	Graphs int
	// Fault is the reason why there is none although they were requested.
	Fault error
	Sums  RankSums
	// Forms are those of the players' training graphs; none on the CPU. Evaluation is that of the evaluation graph.
	Forms      []Form
	Evaluation Form
	// ArenaBytes is the memory of the intermediate values of training and evaluation.
	ArenaBytes int
	// Settled is the part of Time in which trial runs settled the arena.
	Settled time.Duration
	Time    time.Duration
}

// RankSums says how gradients are summed over the ranks.
type RankSums struct {
	// Groups is the number of groups in which the training graphs sum; 0 if that is done after them.
	Groups int
	// Copied says that the GPUs copy the groups into each other's memory. Otherwise the ranks sum them.
	Copied bool
	// Apart is the reason why the GPUs do not, if the training graphs could sum.
	Apart error
}

// ErrTogether says that CUDA graphs which sum over the ranks are wrong. They are also if another rank ends meanwhile.
var ErrTogether = errors.New("CUDA graphs with sums over the ranks")

// TooLargeError is a trial run that needs more memory than there is. It matches ort.ErrOutOfMemory.
type TooLargeError struct {
	Bucket int
	Err    error
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("trial run of bucket %d: %v", e.Bucket, e.Err)
}
func (e *TooLargeError) Unwrap() error { return e.Err }

// Prepare runs the training graph on synthetic batches of every bucket, the largest first. So memory is allocated and
// kernels are chosen before the first step, and a batch that does not fit is found there: the error is then a
// *TooLargeError.
//
// With CUDA graphs it then captures one for each slot and bucket, and compares replays with eager runs, in another
// order, because a graph that is captured wrongly gives wrong numbers without an error. If one differs, none is used;
// if training graphs sum over the ranks, that is an error.
//
// Before that it proves the kernels of a fused training graph: on a batch of every bucket they must give the results of
// the graph as exported. What does not is left as exported, region by region.
//
// Prepare must be called on the goroutine that trains, locked to its thread: captured graphs belong to the thread.
// Nothing else in the process may use the GPU meanwhile. On the CPU it does nothing.
func (m *Model) Prepare() (Prepared, error) {
	var p Prepared
	if !m.device.onGPU() {
		return p, nil
	}
	began := time.Now()
	t, err := newTrial(m)
	if err != nil {
		return p, err
	}
	defer t.close()
	for _, t.player = range m.players {
		if err = t.prove(); err != nil {
			return p, err
		}
		p.Forms = append(p.Forms, t.form())
	}
	t.player = t.evaluator
	if err = t.prove(); err != nil {
		return p, err
	}
	p.Evaluation = t.form()
	p.Fault = m.uncaptured
	settling := time.Now()
	if err = t.settle(); err != nil {
		return p, err
	}
	p.Settled = time.Since(settling)
	if p.Sums, err = t.joinRanks(); err != nil {
		return p, err
	}
	if m.capturing {
		err = p.graphs(t)
		m.captured = p.Graphs > 0
		if p.Sums.Groups > 0 && p.Fault != nil && err == nil { // the others wait in a graph that this rank does not run
			err = hint.Errorf("train with --cuda-graphs off, or with --rank-sums after", "%w: %w", ErrTogether, p.Fault)
		}
		if err != nil {
			return p, err
		}
	}
	p.ArenaBytes, err = m.ArenaBytes()
	m.device.Timer.restart()
	p.Time = time.Since(began)
	return p, err
}

// Try runs forward and backward of a player on a synthetic batch of a bucket, in the first device slot. The gradients
// are in the player's arena, as after Train; weights do not change. Like Prepare it must be called on the goroutine
// that trains.
func (m *Model) Try(player, bucket int) (Result, error) {
	t, err := newTrial(m)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	if err := t.fill(0, bucket, anyRows); err != nil {
		return Result{}, err
	}
	return t.Train(player, 0, bucket, 1)
}

// TryEvaluation returns the time of an evaluation of a synthetic batch of a bucket, in the first device slot.
func TryEvaluation(m *Model, bucket int) (time.Duration, error) {
	t, err := newTrial(m)
	if err != nil {
		return 0, err
	}
	defer t.close()
	if err := t.fill(0, bucket, anyRows); err != nil {
		return 0, err
	}
	if _, err := m.Evaluate(0, bucket); err != nil { // the first run allocates
		return 0, err
	}
	began := time.Now()
	_, err = m.Evaluate(0, bucket)
	return time.Since(began), err
}

// trial runs synthetic batches.
type trial struct {
	*Model
	*player                // the one whose graph is tried
	stage   gpu.HostMemory // a batch, then gradients; nil on the CPU
	random  *rand.Rand
	order   []int // buckets, the largest first: the others fit into its memory
}

func newTrial(m *Model) (*trial, error) {
	t := &trial{Model: m, player: m.players[0], random: rand.New(rand.NewPCG(1, 2))}
	for i := range m.layouts {
		t.order = append(t.order, i)
	}
	slices.SortStableFunc(t.order,
		func(a, b int) int { return cmp.Compare(m.layouts[b].InputBytes, m.layouts[a].InputBytes) })
	if !m.device.onGPU() {
		return t, nil
	}
	most, err := 0, error(nil)
	for _, p := range m.players {
		most = max(most, p.sampled())
	}
	t.stage, err = m.device.Context.AllocateHost(max(2*sampledBytes*most, SlotBytes(m.layouts)))
	return t, err
}

func (t *trial) close() {
	if t.stage != nil {
		t.stage.Close()
	}
}

// settle runs every bucket repeatedly until the arena no longer grows. Evaluation comes first: it has fewer and larger
// values, the scores of attention among them, whose memory the values of training then divide. It would not find so
// large pieces in the memory of those.
func (t *trial) settle() error {
	const rounds = 4 // two are enough with memory patterns off
	before := -1
	for range rounds {
		for _, bucket := range t.order {
			if err := t.fill(0, bucket, anyRows); err != nil {
				return err
			}
			_, err := t.Evaluate(0, bucket)
			for player := range t.players {
				if err == nil {
					_, err = t.Train(player, 0, bucket, 1)
				}
			}
			if errors.Is(err, ort.ErrOutOfMemory) {
				return &TooLargeError{bucket, err}
			}
			if err != nil {
				return fmt.Errorf("trial run of bucket %d: %w", bucket, err)
			}
		}
		size, err := t.ArenaBytes()
		if err != nil || size == before {
			return err
		}
		before = size
	}
	return nil
}

// joinRanks has the training graphs sum gradients over the ranks from now on, if those of all ranks can.
func (t *trial) joinRanks() (sums RankSums, err error) {
	if t.ranks == nil {
		return sums, nil
	}
	number := 1 // and more for each CUDA graph: those that a rank captures run with those of the others
	if t.capturing {
		number += len(t.players) * len(t.slots) * len(t.layouts)
	}
	for _, p := range t.players {
		if !p.joins() {
			number = 0
		}
	}
	// It is also the first operation of NCCL, which makes connections that no CUDA graph can capture.
	if same, err := alike(&t.Model.memory, t.ranks, number); err != nil || !same || number == 0 {
		return sums, err
	}
	sums.Copied = true
	for _, p := range t.players {
		reason, err := p.beside.connect()
		if err != nil {
			return sums, err
		}
		if reason != nil {
			sums.Copied, sums.Apart = false, reason
		}
	}
	if !sums.Copied && !t.sumsBeside { // the same on all ranks
		return sums, nil
	}
	for _, p := range t.players {
		p.beside.on = true
		sums.Groups += len(p.beside.groups)
	}
	t.random = rand.New(rand.NewPCG(3, 4)) // from here on all ranks run the same graphs in the same order
	return sums, nil
}

// joins reports whether the player's training graph can sum over the ranks.
func (p *player) joins() bool {
	return p.beside != nil && p.beside.total != nil && len(p.beside.groups) > 0 && p.fusion != nil &&
		len(p.fusion.distrusted) == 0
}

// capturer runs graphs that can be captured as CUDA graphs.
type capturer interface {
	// capture captures each graph and returns their number. An error that is not about memory is a fault.
	capture() (int, error)
	// compare runs each one captured and eagerly. It returns a fault if one differs.
	compare() (fault, err error)
	// release returns to eager runs.
	release()
}

// graphs captures and compares. With a fault, none is used.
func (p *Prepared) graphs(c capturer) (err error) {
	n, fault := c.capture()
	if errors.Is(fault, ort.ErrOutOfMemory) {
		return fault
	}
	if fault == nil {
		fault, err = c.compare()
	}
	if fault != nil || err != nil {
		c.release()
		n = 0
	}
	p.Graphs, p.Fault = n, fault
	return err
}

// capture captures a graph of every player, slot and bucket.
func (t *trial) capture() (n int, err error) {
	for player, p := range t.players {
		for _, bucket := range t.order {
			if p.fusion != nil && p.fusion.distrusted[bucket] != nil {
				continue // the session of the exported graph captures nothing
			}
			for slot := range t.slots {
				if err := t.memory.capture(&p.runs[slot][bucket], n); err != nil {
					return 0, err
				}
				if err := t.fill(slot, bucket, anyRows); err != nil {
					return 0, err
				}
				if _, err := t.Train(player, slot, bucket, 1); err != nil {
					return 0, fmt.Errorf("capture the CUDA graph of %sslot %d, bucket %d: %w",
						p.text(), slot, bucket, err)
				}
				n++
			}
		}
	}
	return n, nil
}

func (t *trial) release() {
	for _, p := range t.players {
		for slot := range p.runs {
			for bucket := range p.runs[slot] {
				p.runs[slot][bucket].options = t.async
			}
		}
	}
}

// tolerance is the largest difference of a replay from an eager run, relative to the norm. Another order of summation
// differs by about 1e-7, or by one bf16 rounding of 4e-3; a graph with stale addresses differs by 1e-1 or more.
const (
	tolerance     = 1e-5
	toleranceBF16 = 2e-2
)

func toleranceOf(precision manifest.DType) float64 {
	if precision == manifest.BF16 {
		return toleranceBF16
	}
	return tolerance
}

// compare replays every graph, each on another batch, in another order. It returns a fault if one differs.
func (t *trial) compare() (fault, err error) {
	type id struct {
		*player
		slot, bucket int
	}
	var ids []id
	for _, p := range t.players {
		for slot := range t.slots {
			for bucket := range t.layouts {
				ids = append(ids, id{p, slot, bucket})
			}
		}
	}
	t.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, at := range ids {
		if err := t.fill(at.slot, at.bucket, anyRows); err != nil {
			return nil, err
		}
		t.player = at.player
		e := t.runs[at.slot][at.bucket]
		*t.seeds[at.slot].value = t.random.Int64()
		replayed, err := t.outcome(e, 0)
		if err != nil {
			return nil, err
		}
		e.options = t.async
		eager, err := t.outcome(e, 1)
		if err != nil {
			return nil, err
		}
		if d := distance(replayed, eager); !(d <= toleranceOf(t.precision)) {
			return fmt.Errorf("the replayed CUDA graph of %sslot %d, bucket %d differs from its kernels by %.2g",
					at.text(), at.slot, at.bucket, d),
				nil
		}
	}
	return nil, nil
}

// sampledBytes of each gradient are compared, because a wrong graph is wrong everywhere.
const sampledBytes = 16 << 10

// sampled is the number of tensors that are compared at most.
func (p *parameters) sampled() int { return len(p.params) + len(p.state.tensors) }

// outcome runs once and copies loss, weight, metrics and the beginnings of all gradients and of the state to one half
// of the stage.
func (t *trial) outcome(e execution, half int) ([][]float32, error) {
	r, err := t.compute(Training, e)
	if err != nil {
		return nil, err
	}
	scalars := []float32{float32(r.Loss), float32(r.Weight)}
	for _, v := range r.Metrics {
		scalars = append(scalars, float32(v))
	}
	var samples []sample
	room := t.stage.Bytes()[half*sampledBytes*t.sampled():]
	for i := range t.params {
		at, ok := t.arena.Parameter(ortgraphs.Gradients, i)
		if !ok {
			continue
		}
		n := min(sampledBytes, at.Bytes())
		if err := t.device.Compute.Download(room[:n], t.grads.dev, at.Offset); err != nil {
			return nil, err
		}
		samples = append(samples, sample{room[:n], at.DType})
		room = room[sampledBytes:]
	}
	left, err := sampleState(t, room)
	if err := errors.Join(err, t.device.Compute.Synchronize()); err != nil {
		return nil, err
	}
	samples = append(samples, left...)
	return append([][]float32{scalars}, values(samples)...), nil
}

// sample is a copy from the GPU.
type sample struct {
	data  []byte
	dtype manifest.DType
}

// values returns the numbers of samples whose copies are done.
func values(samples []sample) (out [][]float32) {
	for _, s := range samples {
		out = append(out, numbers(s.data, s.dtype))
	}
	return out
}
