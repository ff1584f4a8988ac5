package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// ofFirst accepts what the first player of the tests has.
func ofFirst(name string) bool {
	return strings.HasPrefix(name, "text_encoder.") || name == "metric.stop_loss"
}

// several plays batches from several slots: it refuses to give a slot that is held.
type several struct {
	t       *testing.T
	slots   []pipeline.DeviceSlot
	held    map[int]bool
	most    int // slots that were held at a time
	batches []pipeline.Batch
}

func (f *several) Acquire(context.Context) (*pipeline.DeviceSlot, error) {
	if len(f.batches) == 0 {
		return nil, io.EOF
	}
	for i := range f.slots {
		if d := &f.slots[i]; !f.held[i] {
			d.Index, d.Batch, f.batches = i, f.batches[0], f.batches[1:]
			f.held[i] = true
			f.most = max(f.most, len(f.held))
			return d, nil
		}
	}
	f.t.Fatal("every slot is held")
	return nil, nil
}

func (f *several) Ready() bool { return true }
func (f *several) Release(d *pipeline.DeviceSlot) {
	if !f.held[d.Index] {
		f.t.Errorf("slot %d is released twice", d.Index)
	}
	delete(f.held, d.Index)
}
func (f *several) LastWait() time.Duration { return 0 }

// inTurn is a run of pico with two players, on the batches of its golden run.
type inTurn struct {
	*record
	loop *Loop
	feed *several
}

const micros = 2

// playInTurn prepares to train pico with two players on a device for some steps of two micro-batches. fill, which may
// be nil, changes a batch.
func playInTurn(t *testing.T, d Device, b *ortgraphs.Bundle, count int, lr [2]float64, fill func(
	slot int, layout *ring.Layout, room []byte,
)) inTurn {
	t.Helper()
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: micros, Threads: 1, Device: d, CUDAGraphs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := inTurn{record: &record{}, feed: &several{
		t: t, slots: make([]pipeline.DeviceSlot, micros), held: map[int]bool{}, batches: steps(count, micros),
	}}
	r.loop = &Loop{Model: m, Feed: r.feed, Observer: r, Policy: Policy{MaxSkipped: 2}}
	for i, p := range b.Manifest.InTurn() {
		r.loop.Policy.Schedules = append(r.loop.Policy.Schedules, schedule.Schedule{Name: "constant", BaseLR: lr[i]})
		o, err := NewOptimizer(m, i, p.Optimizer, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		r.loop.Optimizers = append(r.loop.Optimizers, o)
	}
	if _, err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.loop.Optimizers.Prepare(); err != nil {
		t.Fatal(err)
	}
	room := input(t, m)
	if !d.onGPU() {
		room = make([]byte, len(room))
	}
	for slot := range micros { // each has a batch of its own
		batch := g.Steps[0]
		batch.Batch = uint64(slot)
		g.fill(t, batch, &layouts[0], room)
		if fill != nil {
			fill(slot, &layouts[0], room)
		}
		if err := m.Load(slot, 0, room); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// oneAtATime trains one of the players: all other parameters are frozen.
type oneAtATime struct {
	m *Model
	o *Optimizer
}

func alone(t *testing.T, b *ortgraphs.Bundle, trains func(name string) bool) oneAtATime {
	t.Helper()
	frozen := map[string]bool{}
	for _, p := range b.Manifest.Parameters {
		frozen[p.Name] = !trains(p.Name)
	}
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{Frozen: frozen})
	m, err := NewModel(
		ModelConfig{Bundle: b, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: micros, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for slot := range micros {
		batch := g.Steps[0]
		batch.Batch = uint64(slot)
		g.fill(t, batch, &layouts[0], m.slots[slot].host)
	}
	o, err := NewOptimizer(m, 0, b.Manifest.Optimizer, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return oneAtATime{m, o}
}

// window trains on a window.
func (a oneAtATime) window(t *testing.T, batches []pipeline.Batch, lr float64) (loss float64) {
	t.Helper()
	var sum mean
	for i, b := range batches {
		r, err := a.m.Train(0, i, 0, b.Seed)
		if err != nil {
			t.Fatal(err)
		}
		sum.add(r)
		if err := a.o.Accumulate(i == 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, updated := step(t, a.m, a.o, lr); !updated {
		t.Fatal("no update")
	}
	loss, _ = sum.result(nil, false)
	return loss
}

func data(tensors []checkpoint.Tensor) map[string][]byte {
	all := map[string][]byte{}
	for _, t := range tensors {
		all[t.Name] = t.Data
	}
	return all
}

// TestPlayersTrainInTurn: two players give the bits of two models that are trained in turn on the same window, each
// with the parameters of the other one frozen and as that one has left them.
func TestPlayersTrainInTurn(t *testing.T) {
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) { trainInTurn(t, device(t)) })
	}
}

func trainInTurn(t *testing.T, d Device) {
	const count = 3
	lr := [2]float64{2e-3, 1e-3}
	both := playInTurn(t, d, bundletest.WithPlayers(t, pico, ofFirst, nil), count, lr, nil)
	if err := both.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(both.loop.Model.Pull(), both.loop.Optimizers.Pull()); err != nil {
		t.Fatal(err)
	}
	if both.feed.most != micros || len(both.feed.held) > 0 {
		t.Errorf("up to %d slots were held, %d are", both.feed.most, len(both.feed.held))
	}
	b := open(t, pico)
	first, second := alone(t, b, ofFirst), alone(t, b, func(name string) bool { return !ofFirst(name) })
	for s, all := range slices.Collect(slices.Chunk(steps(count, micros), micros)) {
		first.window(t, all, lr[0])
		handOver(t, first.m, second.m)
		loss := second.window(t, all, lr[1])
		handOver(t, second.m, first.m)
		w := both.windows[s]
		if w.Loss != loss || w.Skipped || len(w.Players) != 2 || w.Players[0].Name != bundletest.First ||
			w.GradNorm != w.Players[1].GradNorm {
			t.Errorf("step %d: %+v, want loss %v", s+1, w, loss)
		}
	}
	same := func(what string, got, want map[string][]byte) {
		if len(got) == 0 || !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s differ from those of models trained in turn", what)
		}
	}
	moments := data(first.o.Moments())
	maps.Copy(moments, data(second.o.Moments()))
	same("weights", data(both.loop.Model.Weights()), data(second.m.Weights()))
	same("moments", data(both.loop.Optimizers.Moments()), moments)
	for i, name := range both.loop.Model.names { // each metric is that of its player
		if v := both.windows[0].Metrics[i]; math.IsNaN(v) {
			t.Errorf("metric %s is %v", name, v)
		}
	}
}

// handOver copies all weights.
func handOver(t *testing.T, from, to *Model) {
	t.Helper()
	weights := data(from.Weights())
	for _, w := range to.Weights() {
		copy(w.Data, weights[w.Name])
	}
	if err := to.Push(); err != nil {
		t.Fatal(err)
	}
}

// infiniteWhereLoud makes the loss of a graph infinite when a spectrogram has a value above 100.
func infiniteWhereLoud(g *onnxpb.GraphProto) {
	for _, n := range g.Node {
		for _, names := range [][]string{n.Input, n.Output} {
			for i := range names {
				if names[i] == "loss" {
					names[i] = "finite_loss"
				}
			}
		}
	}
	node := func(op, out string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}}
	}
	most := node("ReduceMax", "loudest", "mel_spectrograms")
	most.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("keepdims"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0)},
	}
	g.Node = append(g.Node, most, node("Exp", "huge", "loudest"), node("Add", "loss", "finite_loss", "huge"))
}

// TestPlayerIsSkippedAlone: a player whose loss is not finite keeps its weights and moments, and the other one trains.
func TestPlayerIsSkippedAlone(t *testing.T) {
	b := bundletest.WithPlayers(t, pico, ofFirst, infiniteWhereLoud)
	r := playInTurn(t, Device{}, b, 1, [2]float64{1e-3, 1e-3}, func(slot int, layout *ring.Layout, room []byte) {
		if slot == 1 {
			ort.View[float32](layout.View(room, "mel_spectrograms"))[0] = 200
		}
	})
	before := map[string][]byte{}
	for name, now := range data(r.loop.Model.Weights()) {
		before[name] = bytes.Clone(now)
	}
	if err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := r.windows[0]
	if !w.Skipped || !slices.Equal(w.SkippedPlayers(), []string{bundletest.First}) || !isFinite(w.Loss) {
		t.Errorf("%+v", w)
	}
	if first, second := r.loop.Optimizers[0].Steps, r.loop.Optimizers[1].Steps; first != 0 || second != 1 {
		t.Errorf("%d and %d updates", first, second)
	}
	for name, now := range data(r.loop.Model.Weights()) {
		if bytes.Equal(now, before[name]) != ofFirst(name) {
			t.Errorf("%s changed: %v", name, !ofFirst(name))
		}
	}
	if r.loop.Optimizers.Incomplete() {
		t.Error("incomplete after the end of the window")
	}
}

// TestPlayerAtRateZero: a player whose rate is 0 keeps its weights, whichever it is, and the other one trains.
func TestPlayerAtRateZero(t *testing.T) {
	for idle := range 2 {
		lr := [2]float64{1e-3, 1e-3}
		lr[idle] = 0
		r := playInTurn(t, Device{}, bundletest.WithPlayers(t, pico, ofFirst, nil), 2, lr, nil)
		before := map[string][]byte{}
		for name, now := range data(r.loop.Model.Weights()) {
			before[name] = bytes.Clone(now)
		}
		if err := r.loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range r.windows {
			if w.Skipped || !isFinite(w.Loss) || w.Players[0].LR != lr[0] || w.Players[1].LR != lr[1] || w.LR != lr[1] {
				t.Errorf("player %d is idle: %+v", idle, w)
			}
		}
		for name, now := range data(r.loop.Model.Weights()) {
			if kept := bytes.Equal(now, before[name]); kept != (ofFirst(name) == (idle == 0)) {
				t.Errorf("player %d is idle, %s is kept: %v", idle, name, kept)
			}
		}
	}
}

// TestPlayersHaveSchedules: each player follows its own, also in what lowers the rate at an evaluation.
func TestPlayersHaveSchedules(t *testing.T) {
	r := playInTurn(t, Device{}, bundletest.WithPlayers(t, pico, ofFirst, nil), 3, [2]float64{1e-3, 1e-3}, nil)
	policy := &r.loop.Policy
	policy.Schedules = []schedule.Schedule{
		{Name: schedule.Plateau, BaseLR: 5e-3, WarmupSteps: 2, Factor: 0.5, Patience: 1},
		{Name: schedule.Linear, BaseLR: 1e-3, TotalSteps: 4},
	}
	r.loop.Progress.Plateaus = []schedule.State{{Reductions: 1}, {}}
	if err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for s, w := range r.windows {
		first, second := policy.Schedules[0].LR(int64(s), 1), policy.Schedules[1].LR(int64(s), 0)
		if w.Players[0].LR != first || w.Players[1].LR != second || w.LR != second || first == second {
			t.Errorf("step %d: %+v, want the rates %v and %v", w.Step, w.Players, first, second)
		}
	}
}

// TestPlayersKeepTheirState: only the player that has a state changes it, once for each of its batches, and the other
// one reads it.
func TestPlayersKeepTheirState(t *testing.T) {
	stateful := bundletest.Stateful(t, pico)
	b := bundletest.WithPlayers(t, stateful.Dir,
		func(name string) bool { return ofFirst(name) || strings.HasPrefix(name, "statistics.") }, nil)
	const count = 3
	r := playInTurn(t, Device{}, b, count, [2]float64{1e-3, 1e-3}, nil)
	if err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := data(r.loop.Model.Weights())
	if n := floats(all[bundletest.StateCount])[0] - 0.5; n != count*micros { // it begins at 0.5
		t.Errorf("the state counts %v batches, want %d", n, count*micros)
	}
	with := r.windows[count-1].Loss
	r = playInTurn(t, Device{}, b, count, [2]float64{1e-3, 1e-3}, nil)
	mean := ort.View[float32](data(r.loop.Model.Weights())[bundletest.StateMean])
	for i := range mean {
		mean[i] += 0.5
	}
	if err := r.loop.Model.Push(); err != nil {
		t.Fatal(err)
	}
	if err := r.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.windows[count-1].Loss == with {
		t.Error("the second player does not read the state of the first")
	}
}

// TestPlayersAreFused: the training graph of each player is fused, proved and captured by itself.
func TestPlayersAreFused(t *testing.T) {
	b := bundletest.WithPlayers(t, pico, ofFirst, nil)
	g := readGolden(t, "pico.json")
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	open := func(c ModelConfig) *Model {
		c.Bundle, c.Arenas, c.Layouts, c.Slots, c.Threads = b, arenasOf(b), layouts, 1, 1
		m, err := NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	d, _ := fakeDevice(t)
	var checked []string
	plain, fused := open(ModelConfig{}), open(ModelConfig{
		Device: d, Fuse: FuseConfig{Compiler: fusedtest.NewCompiler(t)}, CUDAGraphs: true,
		Capturable: func(file string, _ []byte) error { checked = append(checked, file); return nil },
	})
	p, err := fused.Prepare()
	if err != nil || p.Fault != nil || len(p.Forms) != 2 || p.Graphs != 2*len(layouts) {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, name := range []string{bundletest.First, bundletest.Second} {
		form := p.Forms[i]
		if form.Player != name || form.Unfused != nil || form.Fusion.Kernels < 20 || len(form.Fusion.Faulty) > 0 ||
			len(form.Fusion.Unproved) > 0 {
			t.Errorf("%+v: %+v", form, form.Fusion)
		}
	}
	if len(checked) != 2 || checked[0] == checked[1] {
		t.Errorf("checked for capture: %v", checked)
	}
	for player := range fused.players {
		want, err := plain.Try(player, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fused.Try(player, 0); err != nil || !(math.Abs(got.Loss/want.Loss-1) < 1e-5) {
			t.Errorf("player %d: loss %v, want %v; %v", player, got.Loss, want.Loss, err)
		}
	}
}
