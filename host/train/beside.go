package train

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/peers"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// beside sums the gradients of a player over the ranks while its training graph computes others, on a stream of its
// own. The graph calls a hook when it has queued what computes a group of them. The last hook has the graph's stream
// wait for what the hooks have queued, so what follows the graph finds the sums.
//
// Where the GPUs reach each other's memory, hooks copy the gradients there, and the last one adds up what has come.
// Elsewhere each hook weighs its group and has the ranks sum it.
//
// Windows have one micro-batch: what a window accumulates is summed after its last one.
type beside struct {
	memory      *memory
	player      *player
	ranks       Ranks
	batchWeight uint64 // the address of the batch's loss weight
	kernel      *weighKernel
	stream      gpu.Stream
	ready       gpu.Event // a group is computed
	done        gpu.Event // what the hooks have queued on the stream is done
	groups      []besideGroup
	window      *peers.Window // nil if the ranks sum the groups
	squares     block         // the squares of the sums in bf16, of each thread that adds up what has come

	// The optimizer sets these. before queues what is needed before the graph. total queues, with the first group, what
	// makes totals, which are summed with the gradients. weight is the batch's loss weight among them.
	before func() error
	total  func(on gpu.Stream) error
	totals []Part
	weight Part

	on   bool // off, the hooks do nothing: a run is none of a step, or the ranks have not agreed
	next int  // the group that the next hook is for
}

// besideGroup are gradients that are summed together.
type besideGroup struct {
	outputs []string // of the graph
	parts   []Part
}

// newBeside returns what sums a player's gradients, without groups yet; nil if that is impossible.
func newBeside(m *Model, p *player, ranks Ranks) *beside {
	if ranks == nil || !m.device.onGPU() || m.err != nil {
		return nil
	}
	b := &beside{memory: &m.memory, player: p, ranks: ranks, ready: m.event(), done: m.event()}
	var fault, err error
	if b.kernel, fault, err = newWeighKernel(&m.memory); err == nil && fault == nil {
		if b.stream, err = m.device.Context.NewStream(); err == nil {
			m.add(b.stream.Close)
		}
	}
	if m.err = cmp.Or(m.err, err); m.err != nil || fault != nil {
		return nil // without the kernel they are weighed and summed after the graph
	}
	b.batchWeight = uint64(m.out.dev.Pointer()) + uint64(m.weight.at)
	return b
}

// Groups are of an eighth of all gradients, or less: a sum of less takes relatively longer. The last ones are smaller,
// each of half as much as the one before it, because nothing is computed beside the last one.
const (
	besideGroups  = 8
	besideOutputs = 200 // of one hook, with room for losses and metrics
)

// besideLast is the least size in bytes of a group. A test has smaller ones.
var besideLast = 2 << 20

// divide makes the groups from the outputs of the graph in the order in which they are computed. All buckets have the
// same groups: the ranks may train on different ones.
func (b *beside) divide(finished [][]string) {
	index := map[string]int{}
	for i, p := range b.player.params {
		if _, ok := b.player.arena.Parameter(ortgraphs.Gradients, i); ok {
			index[gradientOutput(p)] = i
		}
	}
	total := b.player.grads.size
	limit, size := besideLast, 0
	var parameters []int
	var rest, outputs []string
	for _, together := range slices.Backward(finished) {
		for _, name := range together {
			i, ok := index[name]
			if !ok {
				if isScalar(name) {
					rest = append(rest, name)
				}
				continue
			}
			if len(outputs) == besideOutputs {
				b.group(parameters, outputs)
				parameters, outputs, size = nil, nil, 0
			}
			s, _ := b.player.arena.Parameter(ortgraphs.Gradients, i)
			parameters, outputs, size = append(parameters, i), append(outputs, name), size+s.Bytes()
		}
		if size >= limit {
			b.group(parameters, outputs)
			limit = max(besideLast, min(2*size, total/besideGroups))
			parameters, outputs, size = nil, nil, 0
		}
	}
	if len(parameters) > 0 {
		b.group(parameters, outputs)
	}
	slices.Reverse(b.groups)
	grouped := 0
	for _, g := range b.groups {
		grouped += len(g.outputs)
	}
	if grouped == 0 || grouped < len(index) || len(b.groups[0].outputs)+len(rest) > fused.MaxHookOutputs {
		b.groups = nil // what no node computes, or no hook can wait for: the sums follow the graph
		return
	}
	b.groups[0].outputs = append(b.groups[0].outputs, rest...)
}

// group adds a group before the others.
func (b *beside) group(parameters []int, outputs []string) {
	g := besideGroup{outputs: outputs}
	for _, r := range b.player.arena.Cover(parameters) {
		g.parts = append(g.parts, b.player.grads.part(b.player.grads.span(r)))
	}
	b.groups = append(b.groups, g)
}

// isScalar reports whether an output is a loss, its weight or a metric.
func isScalar(output string) bool {
	return output == "loss" || output == "loss_weight" || strings.HasPrefix(output, "metric.")
}

// gradientOutput is the name of the output of a training graph that is a parameter's gradient.
func gradientOutput(p manifest.Parameter) string { return "grad." + p.Name }

// hooks are those of a graph; none for nil.
func (b *beside) hooks() (hooks []fused.Hook) {
	if b == nil {
		return nil
	}
	for i, g := range b.groups {
		hooks = append(hooks, fused.Hook{Outputs: g.outputs, Call: func() error { return b.hook(i) }})
	}
	return hooks
}

// outputs are those by which hooks take part in a graph.
func (b *beside) outputs(m *memory) tensors {
	all := tensors{}
	if b == nil || len(b.groups) == 0 {
		return all
	}
	unused := m.tensor(m.block(apart), 0, manifest.F32, 1)
	for i := range b.groups {
		all[fused.HookOutput(i)] = unused
	}
	return all
}

// begin is called before a run of the graph that belongs to a step.
func (b *beside) begin() error {
	if !b.active() {
		return nil
	}
	return b.before()
}

// sumsInGraphs reports whether training graphs sum gradients over the ranks.
func (all players) sumsInGraphs() bool {
	return slices.ContainsFunc(all, func(p *player) bool { return p.beside.active() })
}

// active reports whether the graph sums the gradients.
func (b *beside) active() bool { return b != nil && b.on }

// hook queues, behind what the graph has queued, what is to be done with a group.
func (b *beside) hook(group int) error {
	if !b.on {
		return nil
	}
	if group == 0 {
		b.next = 0
	}
	if group != b.next { // another order than that of the other ranks
		return fmt.Errorf("the graph has computed group %d of the gradients, not group %d", group, b.next)
	}
	b.next++
	compute := b.memory.device.Compute
	if err := errors.Join(compute.Record(b.ready), b.stream.Wait(b.ready)); err != nil {
		return err
	}
	pass := b.sum
	if b.window != nil {
		pass = b.send
	}
	if err := pass(group); err != nil || b.next < len(b.groups) {
		return err
	}
	err := errors.Join(b.stream.Record(b.done), compute.Wait(b.done))
	if b.window != nil {
		err = errors.Join(err, b.receive(compute))
	}
	return err
}

// sum has the ranks sum a group.
func (b *beside) sum(group int) error {
	parts := b.groups[group].parts
	for _, p := range parts {
		if err := b.kernel.weigh(b.stream, p, b.batchWeight); err != nil {
			return err
		}
	}
	if group == 0 {
		if err := b.total(b.stream); err != nil {
			return err
		}
		parts = slices.Concat(parts, b.totals)
	}
	return b.ranks.Sum(b.stream, parts)
}

// The window has the gradients as the arena has them, and then the totals.

// connect has the hooks copy from now on, if the GPUs of all ranks reach each other's memory. All ranks call it
// together; reason says why they do not.
func (b *beside) connect() (reason, err error) {
	reach, ok := b.ranks.(Reach)
	if !ok {
		return peers.ErrApart, nil
	}
	size := b.totalsAt()
	for _, p := range b.totals {
		size += p.room()
	}
	if b.window, err = reach.Window(size); errors.Is(err, peers.ErrApart) {
		return err, nil
	}
	return nil, err
}

// copies reports whether the graph sums the gradients, and by copies.
func (b *beside) copies() bool { return b.active() && b.window != nil }

// keepSquares has receive write the squares of the sums in bf16, for the norm, and returns their address; 0 for nil.
func (b *beside) keepSquares() uint64 {
	if b == nil {
		return 0
	}
	b.squares = b.memory.block(peers.SumThreads * 4)
	return b.squaresAt()
}

// squaresAt is 0 if nobody needs them.
func (b *beside) squaresAt() uint64 {
	if b.squares.dev == nil {
		return 0
	}
	return uint64(b.squares.dev.Pointer())
}

func (b *beside) totalsAt() int { return aligned(b.player.grads.size) }

// room is what a part takes in a window.
func (p Part) room() int { return aligned(p.Elements * p.DType.Size()) }

func aligned(size int) int { return (size + apart - 1) / apart * apart }

// send copies a group to the other ranks.
func (b *beside) send(group int) error {
	copyPart := func(p Part, at int) error {
		offset := int(p.Address - uint64(p.Block.Pointer()))
		return b.window.Send(b.stream, p.Block, offset, at, p.Elements*p.DType.Size())
	}
	if group == 0 {
		if err := errors.Join(b.window.Begin(b.stream), b.total(b.stream)); err != nil {
			return err
		}
		at := b.totalsAt()
		for _, p := range b.totals {
			if err := copyPart(p, at); err != nil {
				return err
			}
			at += p.room()
		}
	}
	for _, p := range b.groups[group].parts {
		if err := copyPart(p, int(p.Address-uint64(b.player.grads.dev.Pointer()))); err != nil {
			return err
		}
	}
	if group < len(b.groups)-1 {
		return nil
	}
	return b.window.Tell(b.stream)
}

// receive adds up what the ranks have sent, each gradient times its rank's loss weight.
func (b *beside) receive(on gpu.Stream) error {
	if err := b.window.Wait(on); err != nil {
		return err
	}
	grads := &b.player.grads
	narrow, wide := spans(*grads)
	weightAt := b.totalsAt() + int(b.weight.Address-b.totals[0].Address)
	for _, r := range []ortgraphs.Range{narrow, wide} {
		if r.Len() == 0 {
			continue
		}
		span := grads.span(r)
		part := peers.Part{
			Address: grads.part(span).Address, Elements: span.Elements, BF16: span.DType == manifest.BF16,
			At: span.Offset, Weight: b.weight.Address, WeightAt: weightAt,
		}
		if part.BF16 {
			part.Squares = b.squaresAt()
		}
		if err := b.window.Sum(on, part); err != nil {
			return err
		}
	}
	at := b.totalsAt()
	for _, p := range b.totals { // after the gradients, which need the weight of each rank
		if err := b.window.Sum(on, peers.Part{Address: p.Address, Elements: p.Elements, At: at}); err != nil {
			return err
		}
		at += p.room()
	}
	return b.window.Took(on)
}
