package train

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/gpu/peers"
	"github.com/xtts-host/xtts-host/gpu/peers/peerstest"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// twin is the ranks of a world of two on a fake GPU of which the other one has the same values.
type twin struct {
	model  gpu.Stream
	sums   []int // the parts of each sum
	aside  int   // sums on another stream than the model's
	refuse bool  // the other rank cannot do what all must be able to do
}

func (w *twin) Sum(on gpu.Stream, parts []Part) error {
	if w.sums = append(w.sums, len(parts)); on != w.model {
		w.aside++
	}
	return on.(*gputest.Stream).Run(time.Millisecond, func() error {
		for i, p := range parts {
			if p.DType != manifest.F32 {
				return fmt.Errorf("part %d is %q", i, p.DType)
			}
			at := *(*unsafe.Pointer)(unsafe.Pointer(&p.Address)) // outside of Go's heap
			for j, v := range unsafe.Slice((*float32)(at), p.Elements) {
				unsafe.Slice((*float32)(at), p.Elements)[j] = v + v
			}
			if w.refuse && len(parts) == 3 && i < 2 { // the other one's number is 0
				*(*float32)(at) /= 2
			}
		}
		return nil
	})
}

func (*twin) Broadcast([]Part) error { return errors.New("nothing is broadcast") }

// summed is what a training has shown.
type summed struct {
	twin
	windows []event.Step
	tallies []Tally
	weights []byte
	groups  int
}

const besideSteps = 5

// known remembers what was proved, so that later models do not prove it again.
type known map[[sha256.Size]byte][]byte

func (p known) Proved(graph [sha256.Size]byte) []byte      { return p[graph] }
func (p known) Remember(graph [sha256.Size]byte, s []byte) { p[graph] = s }

// trainTwins trains one batch ahead, beside the graph or after it. The batch of the fourth step is not finite.
func trainTwins(t *testing.T, c ModelConfig, s *summed, kernels map[string]func([]uint64), beside bool) {
	t.Helper()
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	maps.Copy(kernels, fakeKernels())
	c.Device, _ = fakeWith(t, kernels)
	s.model = c.Device.Compute
	if beside {
		c.Ranks, c.SumsBeside = s, true
	}
	c.Bundle, c.Arenas, c.Layouts, c.Slots, c.Threads = b, arenasOf(b), layouts, 2, 1
	m, err := NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := newOptimizer(t, m, g.Optimizer, false)
	all := Optimizers{o}
	if err := o.Share(s); err != nil {
		t.Fatal(err)
	}
	p, err := m.Prepare()
	if err != nil || p.Fault != nil || len(p.Forms[0].Fusion.Faulty) > 0 || (p.Graphs > 0) != c.CUDAGraphs {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err := o.Prepare(); err != nil || p.Fault != nil {
		t.Fatal(p.Fault, err)
	}
	s.groups, s.sums, s.aside = p.Sums.Groups, nil, 0
	f := &twoSlots{T: t, model: m, batches: steps(besideSteps, 1)}
	f.fill = func(p *pipeline.Batch, slot int) {
		all.SetTally(Tally{Samples: 10, Frames: 100 + float32(p.Step)})
		room := input(t, m)
		g.fill(t, g.Steps[0], &layouts[0], room)
		mel := ort.View[float32](layouts[0].View(room, "mel_spectrograms"))
		if mel[f.next] += float32(f.next); p.Step == 3 {
			mel[0] = float32(math.NaN())
		}
		if err := m.Load(slot, 0, room); err != nil {
			t.Fatal(err)
		}
	}
	l := &Loop{Model: m, Optimizers: all, Feed: f, Observer: &record{onStep: func(w *event.Step) error {
		one := *w
		one.Metrics = slices.Clone(w.Metrics)
		s.windows, s.tallies = append(s.windows, one), append(s.tallies, all.TallySum())
		return nil
	}}, Policy: Policy{Schedules: []schedule.Schedule{{Name: "constant", BaseLR: 1e-2}}, MaxSkipped: 2}}
	if err := errors.Join(l.Run(t.Context()), m.Pull()); err != nil {
		t.Fatal(err)
	}
	s.weights = bytes.Clone(m.players[0].weights.host)
}

// TestSumsBesideTheGraph: gradients that the training graph sums over the ranks have the bits of those that are summed
// after it, and so have losses, metrics and tallies, with CUDA graphs and without. If a rank cannot, none does.
func TestSumsBesideTheGraph(t *testing.T) {
	defer func(least int) { besideLast = least }(besideLast)
	besideLast = 4 << 10
	c := ModelConfig{Fuse: FuseConfig{Compiler: fusedtest.NewCompiler(t), Proofs: known{}}, CUDAGraphs: true}
	var want summed
	trainTwins(t, c, &want, fakeWeighs(0), false)
	for name, x := range map[string]struct {
		eager, refuse bool
		kernels       map[string]func([]uint64)
		beside        bool
	}{
		"graphs":             {false, false, fakeWeighs(0), true},
		"eager":              {true, false, fakeWeighs(0), true},
		"without a kernel":   {false, false, map[string]func([]uint64){}, false},
		"another rank can't": {false, true, fakeWeighs(0), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, got := c, summed{twin: twin{refuse: x.refuse}}
			c.CUDAGraphs = !x.eager
			trainTwins(t, c, &got, x.kernels, true)
			sums, aside := besideSteps, 0
			if x.beside {
				sums, aside = besideSteps*got.groups, besideSteps*got.groups
			}
			if (got.groups > 2) != x.beside || len(got.sums) != sums || got.aside != aside {
				t.Errorf("%d groups; sums of %v parts, %d on a stream of their own", got.groups, got.sums, got.aside)
			}
			if !bytes.Equal(got.weights, want.weights) {
				t.Error("other weights")
			}
			for i, w := range got.windows {
				same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
				other := want.windows[i]
				if !same(w.Loss, other.Loss) || !same(w.GradNorm, other.GradNorm) || w.Skipped != (i == 3) ||
					!slices.EqualFunc(w.Metrics, other.Metrics, same) {
					t.Errorf("step %d: %+v, want %+v", i+1, w, other)
				}
				if told := (Tally{Samples: 20, Frames: 200 + 2*float32(i)}); got.tallies[i] != told {
					t.Errorf("step %d: told %+v, want %+v", i+1, got.tallies[i], told)
				}
			}
		})
	}
}

// TestGroupsInOrder: gradients that a graph computes in another order than the other ranks' graphs are not summed with
// theirs.
func TestGroupsInOrder(t *testing.T) {
	d, _ := fakeWith(t, fakeWeighs(0))
	m := newMemory(d)
	defer m.Close()
	b := &beside{
		memory: &m, ranks: new(onlyRank), stream: d.Compute, ready: m.event(), done: m.event(), on: true,
		groups: make([]besideGroup, 3), total: func(gpu.Stream) error { return nil },
	}
	if err := errors.Join(b.hook(0), b.hook(1), b.hook(0), b.hook(1), b.hook(2)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.hook(0), b.hook(2)); err == nil || !strings.Contains(err.Error(), "group 2") {
		t.Errorf("group 2 after group 0: %v", err)
	}
}

// TestSumsWait: a sum waits for the work that computes its gradients, and the model's stream for the last sum.
func TestSumsWait(t *testing.T) {
	d, _ := fakeWith(t, fakeWeighs(0))
	m := newMemory(d)
	defer m.Close()
	aside, err := d.Context.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	defer aside.Close()
	kernel, fault, err := newWeighKernel(&m)
	if err != nil || fault != nil {
		t.Fatal(fault, err)
	}
	data := m.words(2)
	value, weight := newWord[float32](&m, data, manifest.F32), newWord[float32](&m, data, manifest.F32)
	*weight.value = 3
	b := &beside{
		memory: &m, ranks: new(twin), stream: aside, ready: m.event(), done: m.event(), on: true, kernel: kernel,
		batchWeight: data.one(weight).Address, groups: []besideGroup{{parts: []Part{data.one(value)}}},
		total: func(gpu.Stream) error { return nil },
	}
	late := func() error { *value.value = 5; return nil }
	if err := errors.Join(
		m.device.Compute.(*gputest.Stream).Run(20*time.Millisecond, late), m.send(data), b.hook(0), m.receive(data),
		m.device.Compute.Synchronize(),
	); err != nil || *value.value != 30 {
		t.Errorf("2 x 3 x 5 = %v, %v", *value.value, err)
	}
}

// TestGroups: every gradient is in one group, the last ones to be computed in small groups at the end.
func TestGroups(t *testing.T) {
	defer func(least int) { besideLast = least }(besideLast)
	besideLast = 1 << 10
	d, _ := fakeWith(t, fakeWeighs(0))
	m, _, _ := picoOn(t, d)
	p := m.players[0]
	var finished [][]string
	for i := range p.params {
		finished = append(finished, []string{gradientOutput(p.params[len(p.params)-1-i])})
	}
	finished = append(finished, []string{"loss", "loss_weight", "metric.mel_loss", "next.x"})
	b := &beside{player: p}
	b.divide(finished)
	covered, last := 0, 0
	for i, g := range b.groups {
		bytes := 0
		for _, part := range g.parts {
			bytes += part.Elements * part.DType.Size()
		}
		covered, last = covered+bytes, bytes
		t.Logf("group %d: %d outputs in %d parts, %d bytes", i, len(g.outputs), len(g.parts), bytes)
	}
	if len(b.groups) < 5 || last > 4<<10 {
		t.Errorf("%d groups, the last one of %d bytes", len(b.groups), last)
	}
	if all := p.arena.Bytes(ortgraphs.Gradients); covered != all {
		t.Errorf("the groups cover %d bytes of %d", covered, all)
	}
	if first := b.groups[0].outputs; !slices.Contains(first, "loss_weight") || slices.Contains(first, "next.x") {
		t.Errorf("the first group waits for %v", first)
	}
}

// reaching are the ranks of a test whose fake GPUs reach each other's memory.
type reaching struct {
	onlyRank
	config peers.Config
}

func (r *reaching) Window(bytes int) (*peers.Window, error) {
	r.config.Bytes = bytes
	return peers.Open(r.config)
}

// copier is a rank that copies gradients to others, on a fake GPU to which its goroutine is bound.
type copier struct {
	rank         int
	card         *gputest.Context
	memory       memory
	grads        vector
	beside       *beside
	loss, weight word[float32]
	totals       *words
	window       window
	norm         *words
	squares      word[float32]
}

// newCopier returns a rank with gradients in f32 and in bf16, in several groups.
func newCopier(rank, size int, misuse func(error), exchange func([]byte) ([][]byte, error)) (*copier, error) {
	kernels := fakeWeighs(0)
	maps.Copy(kernels, peerstest.Kernels())
	maps.Copy(kernels, fakeSums(0))
	c := &copier{rank: rank, card: gputest.New(gputest.Config{Kernels: kernels, Misuse: misuse})}
	if err := c.card.Bind(); err != nil {
		return nil, err
	}
	c.memory = newMemory(Device{Context: c.card})
	m := &c.memory
	stream := func() gpu.Stream {
		s, err := c.card.NewStream()
		if m.err = cmp.Or(m.err, err); err == nil {
			m.add(s.Close)
		}
		return s
	}
	m.device.Compute = stream()
	var list []manifest.Parameter
	for i := range 9 {
		list = append(list, manifest.Parameter{
			Name: fmt.Sprint(i), Shape: []int{100 + 70*i}, Decay: i%2 == 0,
			Compute: []manifest.DType{manifest.F32, manifest.BF16}[i%3/2],
		})
	}
	arena := ortgraphs.NewArena(list, ortgraphs.Policy{Precision: manifest.BF16})
	c.grads, c.totals = m.vector(arena, ortgraphs.Gradients), m.words(2)
	c.loss, c.weight = newWord[float32](m, c.totals, manifest.F32), newWord[float32](m, c.totals, manifest.F32)
	c.norm = m.words(1)
	c.squares = newWord[float32](m, c.norm, manifest.F32)
	c.beside = &beside{
		memory: m, stream: stream(), ready: m.event(), done: m.event(), on: true,
		player: &player{parameters: parameters{params: list, arena: arena, grads: c.grads}},
		ranks:  &reaching{config: peers.Config{Context: c.card, Rank: rank, Size: size, Exchange: exchange}},
		total:  func(gpu.Stream) error { return nil }, weight: c.totals.one(c.weight),
		totals: []Part{c.totals.part(ortgraphs.Span{DType: manifest.F32, Elements: c.totals.used / 4})},
	}
	var finished [][]string
	for _, p := range slices.Backward(list) {
		finished = append(finished, []string{gradientOutput(p)})
	}
	c.beside.divide(finished)
	reason, err := c.beside.connect()
	narrow, _ := spans(c.grads)
	c.window.grads = c.grads
	fault := c.window.sumInKernel(m, c.beside, narrow, uint64(c.norm.dev.Pointer())+uint64(c.squares.at))
	return c, cmp.Or(m.err, err, reason, fault)
}

// sum makes a round with values and weights of which every rank knows those of all.
func (c *copier) sum(weights []float32, value func(rank, i int) float32) error {
	m, grads := &c.memory, &c.beside.player.grads
	*c.loss.value, *c.weight.value = float32(c.rank+1), weights[c.rank]
	err := errors.Join(m.mirror(&grads.block), m.send(c.totals))
	narrow, wide := spans(*grads)
	both := []ortgraphs.Range{narrow, wide}
	for _, r := range both {
		span, x := grads.span(r), make([]float32, r.Len())
		for i := range x {
			x[i] = value(c.rank, r.Start+i)
		}
		setNumbers(grads.host[span.Offset:][:span.Bytes()], span.DType, x)
	}
	err = errors.Join(err, m.push(&grads.block))
	for group := range c.beside.groups {
		err = errors.Join(err, c.beside.hook(group))
	}
	err = errors.Join(err, c.window.sum(), m.pull(&grads.block), m.receive(c.totals), m.receive(c.norm),
		m.device.Compute.Synchronize())
	total, losses := float32(0), float32(0)
	for rank, weight := range weights {
		total, losses = total+weight, losses+float32(rank+1)
	}
	if *c.loss.value != losses || *c.weight.value != total {
		err = errors.Join(err, fmt.Errorf("the totals are %v and %v", *c.loss.value, *c.weight.value))
	}
	squares := 0.0
	for _, x := range grads.numbers(narrow) {
		squares += float64(x) * float64(x)
	}
	if got := float64(*c.squares.value); !(math.Abs(got-squares) <= 1e-5*squares) && squares == squares {
		err = errors.Join(err, fmt.Errorf("the sum of the squares is %g, not %g", got, squares))
	}
	for _, r := range both {
		got, dtype := grads.numbers(r), grads.span(r).DType
		for i := range got {
			var want float32
			for rank, weight := range weights {
				want += kernels.Weighed(inType(value(rank, r.Start+i), dtype), weight)
			}
			if want = inType(want, dtype); math.Float32bits(got[i]) != math.Float32bits(want) {
				return errors.Join(err, fmt.Errorf("gradient %d in %s is %v, not %v", r.Start+i, dtype, got[i], want))
			}
		}
	}
	return err
}

// TestCopies: gradients in f32 and bf16 that two or three ranks copy in several groups become their sums, each times
// the weight of its rank, and so do the totals, step by step; the norm gets the squares of the sums. A rank without
// weight adds nothing, whatever its gradients are.
func TestCopies(t *testing.T) {
	defer func(least int) { besideLast = least }(besideLast)
	besideLast = 256
	for size := 2; size <= 3; size++ {
		meeting, errs := peerstest.NewMeeting(size), make(chan error)
		for rank := range size {
			go func() {
				runtime.LockOSThread() // never unlocked
				exchange := meeting.Exchange(rank)
				c, err := newCopier(rank, size, func(err error) { t.Error(err) }, exchange)
				if err == nil && len(c.beside.groups) < 4 {
					err = fmt.Errorf("%d groups", len(c.beside.groups))
				}
				for step := 0; err == nil && step < 3; step++ {
					weights := []float32{3, 0, 0.5}[:size]
					weights[0] += float32(step)
					err = c.sum(weights, func(rank, i int) float32 {
						if rank == 1 && i%5 == 0 {
							return float32(math.NaN())
						}
						return float32(math.Sin(float64(i*(rank+1)+step))) * 100
					})
				}
				if err != nil {
					errs <- fmt.Errorf("rank %d of %d: %w", rank, size, err)
					return
				}
				_, err = exchange(nil) // no rank closes what another one still writes to
				errs <- errors.Join(err, c.beside.window.Close(), c.memory.Close(), c.card.Close())
			}()
		}
		for range size {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
}
