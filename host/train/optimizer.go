package train

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu/kernels"
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
		fusion: &fusion{ptx: kernels.AdamW, numbers: adamwNumbers, draw: drawAdamW},
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
	window   window
	segments []segment
	updates  []update          // none with kernels
	kernels  map[forms]*kernel // by what a segment is made of; nil for none
	fault    error             // why there are none although the rule has them

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

// flag makes an input that stays as it is.
func (s *scalars) flag(m *memory, v uint8) *ort.Tensor {
	w := newWord[uint8](m, s.in, manifest.Bool)
	*w.value = v
	return w.tensor
}

// output makes a value that a graph writes and no one else reads.
func (s *scalars) output(m *memory) *ort.Tensor {
	return newWord[float32](m, s.out, manifest.F32).tensor
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
	if o.model.capturing && o.async != nil && o.err == nil {
		o.err = o.async.NoGraph() // until Prepare
	}
	for range o.rule.state {
		o.state = append(o.state, o.vector(o.model.arena, ortgraphs.State))
	}
	o.scalars = newScalars(&o.memory, o.rule, o.params, 3+len(o.model.arena.Segments()), 5)
	graphs := &graphs{memory: &o.memory, threads: threads, capturing: o.model.capturing, open: map[graph]*ort.Session{}}
	o.bindWindow(graphs, accumulating)
	o.segments = trainedSegments(o.window.grads, o.params.WeightDecay)
	if o.rule.fusion != nil && o.device.onGPU() && o.err == nil {
		o.fault, o.err = o.fuse()
	}
	if o.kernels == nil && o.err == nil {
		o.bindUpdates(graphs)
	}
	if o.err == nil {
		o.err = o.send(o.in) // the constants; Step sends again what changes
	}
}

// Step queues the end of a window: the sum of gradients is scaled by the sum of the weights and clipped, and the weights are
// updated. When loss or gradients are not finite, or the sum of weights is 0, nothing is changed. Outcome tells, when a Fetch
// after Step has its Result; before the next Step it must be asked.
func (o *Optimizer) Step(lr float64) error {
	*o.lr.value, *o.step.value = lr, o.Steps+1
	if err := errors.Join(o.send(o.in), o.device.Timer.begin(Optimizing), o.window.share.sum(), o.window.measure(&o.memory), o.receive(o.out)); err != nil {
		return err
	}
	o.torn = true
	if o.kernels != nil {
		for _, g := range o.segments {
			k := o.kernels[g.forms]
			if err := k.update(g.Range, fusedBlocks, o.params, lr, g.decay, o.Steps+1); err != nil {
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
func (o *Optimizer) Fused() (fused bool, fault error) { return o.kernels != nil, o.fault }

// Pull brings what Moments shows up to date, Push takes over what was written there. On the CPU that is always so.
func (o *Optimizer) Pull() error { return each(o.state, o.pull) }

// Push is the way back from Pull.
func (o *Optimizer) Push() error { return each(o.state, o.push) }

func each(state []vector, move func(*block) error) error {
	for i := range state {
		if err := move(&state[i].block); err != nil {
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
	n := o.window.acc.size
	for _, s := range o.state {
		n += s.size
	}
	return n
}
