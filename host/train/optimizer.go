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

// gpuChunk is the same on a GPU: its intermediates take a few hundred megabytes, and each run launches some 30 kernels. Measured on
// an H200 with 66 M parameters: 2.6 ms a step, against 2.2 ms over the whole vector, whose intermediates take 2 GB.
const gpuChunk = 1 << 22

// rule is what tells one optimizer's graph from another's. The graph has the rule's name, and beside what the rule
// lists it takes the inputs that every optimizer does.
type rule struct {
	// state names the vectors that it keeps: the input NAME, the output NAME_out. They begin at 0. A checkpoint has
	// them as NAME.<parameter>, which is PyTorch's name.
	state []string
	// scalars returns the f64 inputs that stay as they are.
	scalars func(p manifest.Optimizer) map[string]float64
}

var rules = map[string]rule{
	"adamw": {
		state: []string{"exp_avg", "exp_avg_sq"},
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"beta1": p.Betas[0], "beta2": p.Betas[1], "eps": p.Eps}
		},
	},
	"sgd": {
		state: []string{"momentum_buffer"},
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"momentum": p.Momentum}
		},
	},
}

// Optimizer updates a model's weights in place. It belongs to the trainer's goroutine.
type Optimizer struct {
	memory
	model  *Model
	params manifest.Optimizer
	rule   rule

	state []block // the rule's vectors, laid out like the weights
	acc   block   // accumulated gradients; none without accumulation

	in, out     *words
	lr          word[float64]
	step        word[int64]
	loss, scale word[float32]
	gradNorm    word[float32]
	finite      word[uint8]
	weight      word[float32] // of the micro-batch
	first       word[uint8]   // it is the window's first

	accumulate, norm execution
	updates          []execution // one per chunk

	// Steps counts the updates. Skipped windows do not count.
	Steps int64
	torn  bool
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
	n := o.model.arena.Len
	trained := o.model.arena.NotDecayed.End // what lies behind is frozen
	session := func(name string) *ort.Session {
		model, err := ortgraphs.Optimizer(name)
		if err != nil {
			o.err = errors.Join(o.err, err)
		}
		return o.open(ort.SessionConfig{Model: model, Name: name, Threads: threads}, false)
	}
	for range o.rule.state {
		o.state = append(o.state, o.block(4*n))
	}
	constants := o.rule.scalars(o.params)
	o.in, o.out = o.words(9+len(constants)), o.words(2)
	o.lr, o.step = newWord[float64](&o.memory, o.in, manifest.F64), newWord[int64](&o.memory, o.in, manifest.I64)
	o.loss, o.scale = newWord[float32](&o.memory, o.in, manifest.F32), newWord[float32](&o.memory, o.in, manifest.F32)
	o.weight, o.first = newWord[float32](&o.memory, o.in, manifest.F32), newWord[uint8](&o.memory, o.in, manifest.Bool)
	o.gradNorm, o.finite = newWord[float32](&o.memory, o.out, manifest.F32), newWord[uint8](&o.memory, o.out, manifest.Bool)

	grads := o.model.grads
	if accumulating {
		o.acc = o.block(4 * n)
		acc := o.floats(o.acc, 0, trained)
		o.accumulate = o.execution(session("accumulate"), map[string]*ort.Tensor{
			"acc": acc, "grads": o.floats(grads, 0, trained), "weight": o.weight.tensor, "first": o.first.tensor,
		}, map[string]*ort.Tensor{"acc_out": acc})
		grads = o.acc
	}
	o.norm = o.execution(session("norm"), map[string]*ort.Tensor{
		"grads": o.floats(grads, 0, trained), "loss": o.loss.tensor, "grad_scale": o.scale.tensor,
	}, map[string]*ort.Tensor{"grad_norm": o.gradNorm.tensor, "finite": o.finite.tensor})

	constant := func(v float64) *ort.Tensor {
		w := newWord[float64](&o.memory, o.in, manifest.F64)
		*w.value = v
		return w.tensor
	}
	inputs := map[string]*ort.Tensor{
		"lr": o.lr.tensor, "step": o.step.tensor, "grad_scale": o.scale.tensor, "grad_norm": o.gradNorm.tensor, "finite": o.finite.tensor,
		"max_norm": constant(o.params.GradClip),
	}
	for name, v := range constants {
		inputs[name] = constant(v)
	}
	update, chunk := session(o.params.Name), chunk
	if o.device.onGPU() {
		chunk = gpuChunk
	}
	for _, segment := range []struct {
		ortgraphs.Range
		decay float64
	}{{o.model.arena.Decayed, o.params.WeightDecay}, {o.model.arena.NotDecayed, 0}} {
		inputs["weight_decay"] = constant(segment.decay)
		for from := segment.Start; from < segment.End; from += chunk {
			size := min(chunk, segment.End-from)
			view := func(arena block) *ort.Tensor { return o.floats(arena, from, size) }
			inputs["param"], inputs["grad"] = view(o.model.weights), view(grads)
			// In place: the graph is elementwise, so an element is read before it is written.
			outputs := map[string]*ort.Tensor{"param_out": inputs["param"]}
			for i, name := range o.rule.state {
				inputs[name] = view(o.state[i])
				outputs[name+"_out"] = inputs[name]
			}
			o.updates = append(o.updates, o.execution(update, inputs, outputs))
		}
	}
}

// StateVectors is the number of vectors of the weights' size that an optimizer keeps.
func StateVectors(name string) int { return len(rules[name].state) }

// Prepare runs every graph once, in a way that changes nothing, so that its memory is taken before the first step. It returns how much
// that is. On the CPU it does nothing.
func (o *Optimizer) Prepare() (arenaBytes int, err error) {
	if !o.device.onGPU() {
		return 0, nil
	}
	if _, _, err := o.Step(0, 0, 0); err != nil { // a window of weight 0 changes nothing
		return 0, err
	}
	for _, u := range o.updates { // which Step left out: finite is false, so each writes what it read
		if err := o.run(u); err != nil {
			return 0, err
		}
	}
	if o.accumulate.binding != nil {
		if err := o.Accumulate(0, true); err != nil {
			return 0, err
		}
	}
	if err := o.device.Compute.Synchronize(); err != nil {
		return 0, err
	}
	return o.ArenaBytes()
}

// Accumulate adds the gradients of the last Train, times the batch's weight. The first of a window overwrites
// what the window before left. Without accumulation it does nothing: Step takes the gradients as they are.
func (o *Optimizer) Accumulate(weight float64, first bool) error {
	if o.accumulate.binding == nil {
		return nil
	}
	*o.weight.value, *o.first.value = float32(weight), 0
	if first {
		*o.first.value = 1
	}
	if err := o.send(o.in); err != nil {
		return err
	}
	return o.timed(Accumulating, o.accumulate)
}

// Step ends a window: it scales the sum of gradients by the sum of the weights, clips it and updates the weights. It
// returns the gradient's norm before clipping. When loss or gradients are not finite, or weight is 0, nothing is
// changed and updated is false.
func (o *Optimizer) Step(lr, loss, weight float64) (gradNorm float64, updated bool, err error) {
	*o.lr.value, *o.step.value, *o.loss.value = lr, o.Steps+1, float32(loss)
	switch {
	case weight == 0:
		*o.scale.value = 0
	case o.accumulate.binding == nil:
		*o.scale.value = 1
	default:
		*o.scale.value = float32(1 / weight)
	}
	if err := errors.Join(o.send(o.in), o.device.Timer.begin(Optimizing)); err != nil {
		return 0, false, err
	}
	if err := o.run(o.norm); err != nil {
		return 0, false, err
	}
	if err := o.receive(o.out); err != nil {
		return 0, false, err
	}
	gradNorm = float64(*o.gradNorm.value)
	if *o.finite.value == 0 {
		return gradNorm, false, o.device.Timer.end(Optimizing)
	}
	o.torn = true
	for _, u := range o.updates {
		if err := o.run(u); err != nil {
			return gradNorm, false, err
		}
	}
	o.torn = false
	o.Steps++
	return gradNorm, true, o.device.Timer.end(Optimizing)
}

// Torn reports whether an update failed half-way: weights and moments are those of no step, and must not be saved.
func (o *Optimizer) Torn() bool { return o.torn }

// Pull brings what Moments shows up to date, Push takes over what was written there. On the CPU that is always so.
func (o *Optimizer) Pull() error { return o.each(o.pull) }

// Push is the way back from Pull.
func (o *Optimizer) Push() error { return o.each(o.push) }

func (o *Optimizer) each(move func(*block) error) error {
	for i := range o.state {
		if err := move(&o.state[i]); err != nil {
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
