package train

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// chunk is the number of elements that one run of the update graph works on: 1 MiB of f32, so that the graph's
// intermediates stay in the cache. Measured on 66 M parameters: 110 ms a step, against 250 ms over the whole
// vector and 210 ms in chunks of a quarter.
const chunk = 1 << 18

// gpuChunk is the same on a GPU, where the rule has no kernel: intermediates take a few hundred megabytes, and each run launches some 30
// kernels of ONNX Runtime's. Measured on an H200 with AdamW and 66 M parameters: 4.0 ms a step; over the whole vector they would take 2 GB.
const gpuChunk = 1 << 22

// rule is what tells one optimizer's graph from another's. The graph has the rule's name, and beside what the rule
// lists it takes the inputs that every optimizer does.
type rule struct {
	// state names the vectors that it keeps: the input NAME, the output NAME_out. They begin at 0. A checkpoint has
	// them as NAME.<parameter>, which is PyTorch's name.
	state []string
	// scalars returns the f64 inputs that stay as they are.
	scalars func(p manifest.Optimizer) map[string]float64
	fusion  *fusion // nil for none
}

var rules = map[string]rule{
	"adamw": {
		state: ortgraphs.OptimizerState("adamw"),
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"beta1": p.Betas[0], "beta2": p.Betas[1], "eps": p.Eps}
		},
		fusion: &fusion{ptx: adamwKernel, numbers: adamwNumbers, draw: drawAdamW},
	},
	"sgd": {
		state: ortgraphs.OptimizerState("sgd"),
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"momentum": p.Momentum}
		},
	},
}

// Optimizer updates a model's weights in place. It belongs to the trainer's goroutine.
type Optimizer struct {
	memory
	scalars
	model  *Model
	params manifest.Optimizer
	rule   rule

	state    []vector // the rule's
	acc      vector   // accumulated gradients; none without accumulation
	vectors  []vector // what an update works on: weights, gradients, state
	segments []segment

	accumulate [2]execution // the window's first micro-batch, and the others
	norm       execution
	updates    []update // none with a kernel
	kernel     *kernel  // nil for none
	fault      error    // why there is none although the rule has one

	// Steps counts the updates. Skipped windows do not count.
	Steps int64
	torn  bool
}

// scalars are the single values of an update: those that the host writes, and those that the norm's graph does.
type scalars struct {
	in, out  *words
	lr       word[float64]
	step     word[int64]
	gradNorm word[float32]
	finite   word[uint8]
	scale    word[float32] // what norm gives the updates
	inputs   map[string]*ort.Tensor
}

// newScalars makes them for a rule, with room for more of either kind.
func newScalars(m *memory, r rule, p manifest.Optimizer, moreIn, moreOut int) scalars {
	constants := r.scalars(p)
	constants["max_norm"] = p.GradClip
	s := scalars{in: m.words(2 + len(constants) + moreIn), out: m.words(3 + moreOut)}
	s.lr, s.step = newWord[float64](m, s.in, manifest.F64), newWord[int64](m, s.in, manifest.I64)
	s.gradNorm, s.finite = newWord[float32](m, s.out, manifest.F32), newWord[uint8](m, s.out, manifest.Bool)
	s.scale = newWord[float32](m, s.out, manifest.F32)
	s.inputs = map[string]*ort.Tensor{
		"lr": s.lr.tensor, "step": s.step.tensor, "grad_scale": s.scale.tensor, "grad_norm": s.gradNorm.tensor, "finite": s.finite.tensor,
	}
	for name, v := range constants {
		s.inputs[name] = s.constant(m, v)
	}
	return s
}

// constant makes a value that stays as it is.
func (s *scalars) constant(m *memory, v float64) *ort.Tensor {
	w := newWord[float64](m, s.in, manifest.F64)
	*w.value = v
	return w.tensor
}

// bind makes an execution of a rule's graph over a range of weights, gradients and state.
func (s *scalars) bind(m *memory, graph *ort.Session, r rule, weightDecay *ort.Tensor, vectors []vector, over ortgraphs.Range) execution {
	inputs, outputs := maps.Clone(s.inputs), map[string]*ort.Tensor{}
	inputs["weight_decay"] = weightDecay
	for i, name := range append([]string{"param", "grad"}, r.state...) {
		inputs[name] = m.flat(vectors[i], over)
		if name != "grad" { // in place: the graph is elementwise, so an element is read before it is written
			outputs[name+"_out"] = inputs[name]
		}
	}
	return m.execution(graph, inputs, outputs)
}

// segment is a part of the vectors with a weight decay of its own.
type segment struct {
	ortgraphs.Range
	decay float64
}

// update works on a chunk of the vectors.
type update struct {
	execution
	ortgraphs.Range
}

// NewOptimizer makes the optimizer p.Name, "adamw" or "sgd", for a model. accumulating says whether windows have more than one
// micro-batch. threads compute inside an operator, 0 means all cores.
func NewOptimizer(m *Model, p manifest.Optimizer, accumulating bool, threads int) (*Optimizer, error) {
	r, ok := rules[p.Name]
	if !ok {
		return nil, fmt.Errorf("optimizer %q is unknown: there is %s", p.Name, strings.Join(slices.Sorted(maps.Keys(rules)), " and "))
	}
	o := &Optimizer{memory: newMemory(m.device), model: m, params: p, rule: r}
	o.build(accumulating, threads)
	if o.err != nil {
		o.Close()
		return nil, fmt.Errorf("optimizer %s: %w", p.Name, o.err)
	}
	return o, nil
}

func (o *Optimizer) build(accumulating bool, threads int) {
	arena := o.model.arena
	session := func(name string) *ort.Session { return o.optimizer(name, threads, o.model.capturing) }
	if o.model.capturing && o.async != nil && o.err == nil {
		o.err = o.async.NoGraph() // until Prepare
	}
	for range o.rule.state {
		o.state = append(o.state, o.vector(arena, ortgraphs.State))
	}
	o.scalars = newScalars(&o.memory, o.rule, o.params, 4, 2)
	flag := func(v uint8) *ort.Tensor {
		w := newWord[uint8](&o.memory, o.in, manifest.Bool)
		*w.value = v
		return w.tensor
	}
	no, yes := flag(0), flag(1)

	grads := o.model.grads
	window := map[string]*ort.Tensor{"loss": o.model.loss.tensor, "loss_weight": o.model.weight.tensor, "summed": no}
	if accumulating {
		o.acc = o.vector(arena, ortgraphs.State)
		acc := o.flat(o.acc, arena.Trained())
		loss, weight := newWord[float32](&o.memory, o.out, manifest.F32).tensor, newWord[float32](&o.memory, o.out, manifest.F32).tensor
		add := session("accumulate")
		for i, first := range []*ort.Tensor{yes, no} {
			o.accumulate[i] = o.execution(add, map[string]*ort.Tensor{
				"acc": acc, "grads": o.flat(grads, arena.Trained()), "loss": o.model.loss.tensor, "loss_weight": o.model.weight.tensor,
				"first": first, "loss_sum": loss, "weight_sum": weight,
			}, map[string]*ort.Tensor{"acc_out": acc, "loss_sum_out": loss, "weight_sum_out": weight})
		}
		grads = o.acc
		window = map[string]*ort.Tensor{"loss": loss, "loss_weight": weight, "summed": yes}
	}
	window["grads"] = o.flat(grads, arena.Trained())
	o.norm = o.execution(session("norm"), window, map[string]*ort.Tensor{
		"grad_norm": o.gradNorm.tensor, "grad_scale": o.scale.tensor, "finite": o.finite.tensor,
	})

	o.vectors = append([]vector{o.model.weights, grads}, o.state...)
	for _, s := range arena.Segments() {
		switch {
		case s.Trained && s.Decay:
			o.segments = append(o.segments, segment{s.Range, o.params.WeightDecay})
		case s.Trained:
			o.segments = append(o.segments, segment{s.Range, 0})
		}
	}
	if o.rule.fusion != nil && o.device.onGPU() && o.err == nil {
		o.fault, o.err = o.fuse()
	}
	if o.kernel == nil && o.err == nil {
		o.bindUpdates(session(o.params.Name))
	}
	if o.err == nil {
		o.err = o.send(o.in) // the constants; Step sends again what changes
	}
}

// optimizer opens one of the optimizers' graphs.
func (m *memory) optimizer(name string, threads int, graphs bool) *ort.Session {
	model, err := ortgraphs.Optimizer(name)
	m.err = errors.Join(m.err, err)
	return m.open(ort.SessionConfig{Model: model, Name: name, Threads: threads}, graphs)
}

// bindUpdates has the graph update the vectors chunk by chunk.
func (o *Optimizer) bindUpdates(graph *ort.Session) {
	size := chunk
	if o.device.onGPU() {
		size = gpuChunk
	}
	for _, s := range o.segments {
		decay := o.constant(&o.memory, s.decay)
		for from := s.Start; from < s.End; from += size {
			over := ortgraphs.Range{Start: from, End: min(from+size, s.End)}
			o.updates = append(o.updates, update{o.bind(&o.memory, graph, o.rule, decay, o.vectors, over), over})
		}
	}
}

// Accumulate queues that the gradients of the last batch are added to the window's, times the batch's weight. The first of a window
// overwrites what the window before left. Without accumulation it does nothing: Step takes the gradients as they are.
func (o *Optimizer) Accumulate(first bool) error {
	e := o.accumulate[1]
	if first {
		e = o.accumulate[0]
	}
	if e.binding == nil {
		return nil
	}
	return o.timed(Accumulating, e)
}

// Norm returns what Step would find of a window of the last batch alone: the gradient's norm before clipping, and whether loss and
// gradients are finite and the batch has a weight. It waits for that, and changes nothing.
func (o *Optimizer) Norm() (gradNorm float64, finite bool, err error) {
	if err := errors.Join(o.Accumulate(true), o.send(o.in), o.run(o.norm), o.receive(o.out), o.model.Fetch()); err != nil {
		return 0, false, err
	}
	_, err = o.model.Result()
	return float64(*o.gradNorm.value), *o.finite.value != 0, err
}

// Step queues the end of a window: the sum of gradients is scaled by the sum of the weights and clipped, and the weights are
// updated. When loss or gradients are not finite, or the sum of weights is 0, nothing is changed. Outcome tells, when a Fetch
// behind Step has its Result; before the next Step it must be asked.
func (o *Optimizer) Step(lr float64) error {
	*o.lr.value, *o.step.value = lr, o.Steps+1
	if err := errors.Join(o.send(o.in), o.device.Timer.begin(Optimizing), o.run(o.norm), o.receive(o.out)); err != nil {
		return err
	}
	o.torn = true
	if o.kernel != nil {
		for _, g := range o.segments {
			if err := o.kernel.update(g.Range, fusedBlocks, o.params, lr, g.decay, o.Steps+1); err != nil {
				return err
			}
		}
	}
	for _, u := range o.updates {
		if err := o.run(u.execution); err != nil {
			return err
		}
	}
	return o.device.Timer.end(Optimizing)
}

// Outcome returns what the last Step did, which is done: the gradient's norm before clipping, and whether weights were updated.
func (o *Optimizer) Outcome() (gradNorm float64, updated bool) {
	o.torn = false
	if updated = *o.finite.value != 0; updated {
		o.Steps++
	}
	return float64(*o.gradNorm.value), updated
}

// Torn reports whether an update is not known to be whole: weights and moments are those of no step, and must not be saved.
func (o *Optimizer) Torn() bool { return o.torn }

// Fused reports whether an update is one kernel of the GPU, and if the optimizer has one that is not used, why.
func (o *Optimizer) Fused() (fused bool, fault error) { return o.kernel != nil, o.fault }

// Pull brings what Moments shows up to date, Push takes over what was written there. On the CPU that is always so.
func (o *Optimizer) Pull() error { return o.each(o.pull) }

// Push is the way back from Pull.
func (o *Optimizer) Push() error { return o.each(o.push) }

func (o *Optimizer) each(move func(*block) error) error {
	for i := range o.state {
		if err := move(&o.state[i].block); err != nil {
			return err
		}
	}
	return nil
}

// Moments returns the optimizer's state as tensors, named as checkpoints name them: "exp_avg.<parameter>" and so on.
func (o *Optimizer) Moments() []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for i, name := range o.rule.state {
		out = append(out, o.model.views(name, o.state[i])...)
	}
	return out
}

// Bytes returns the memory of the state and the accumulated gradients.
func (o *Optimizer) Bytes() int {
	n := o.acc.size
	for _, s := range o.state {
		n += s.size
	}
	return n
}
