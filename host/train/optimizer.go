package train

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// chunk is the number of elements per run of the update graph: 1 MiB of f32, so that the graph's intermediates stay in
// the cache. Measured with 66 M parameters: 110 ms per step, against 250 ms for the whole vector and 210 ms in
// quarters.
const chunk = 1 << 18

// gpuChunk is the same on a GPU, if the rule has no kernel: intermediates take a few hundred megabytes, and each run
// launches about 30 kernels of ONNX Runtime. Measured on an H200 with AdamW and 66 M parameters: 4.0 ms per step;
// intermediates of the whole vector would take 2 GB.
const gpuChunk = 1 << 22

// rule describes an optimizer. The graph of one with flat state has the rule's name; ortgraphs.UpdateOf names the
// graphs of the others. A graph has some of the rule's inputs and of those that every optimizer has.
type rule struct {
	// state names the flat vectors of the optimizer's state: the input NAME, the output NAME_out. They start at 0. A
	// checkpoint has them as NAME.<parameter>, which is PyTorch's name. There is none if the optimizer updates each
	// parameter by itself.
	state []string
	// scalars returns the constant f64 inputs.
	scalars func(p manifest.Optimizer) map[string]float64
	kernel  *updateKernel // nil for none
}

var rules = map[string]rule{
	"adamw": {
		state: ortgraphs.OptimizerState("adamw"),
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"beta1": p.Betas[0], "beta2": p.Betas[1], "eps": p.Eps}
		},
		kernel: &updateKernel{ptx: kernels.AdamW, numbers: adamwNumbers, draw: drawAdamW},
	},
	"sgd": {
		state: ortgraphs.OptimizerState("sgd"),
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"momentum": p.Momentum}
		},
	},
	"lion": {
		state: ortgraphs.OptimizerState("lion"),
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"beta1": p.Betas[0], "beta2": p.Betas[1]}
		},
	},
	"muon": {
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"momentum": p.Momentum, "beta1": p.Betas[0], "beta2": p.Betas[1], "eps": p.Eps}
		},
	},
	"adafactor": {
		scalars: func(p manifest.Optimizer) map[string]float64 {
			return map[string]float64{"beta2_decay": p.Beta2Decay, "eps1": p.Eps1, "eps2": p.Eps2, "d": p.D}
		},
	},
}

// Optimizer updates the weights of one of a model's players in place. It is for the trainer's goroutine.
type Optimizer struct {
	memory
	scalars
	model  *Model
	player *player
	params manifest.Optimizer
	rule   rule

	moments
	window   window
	segments []segment
	average  average
	updates  []update // none with kernels
	kernelUpdates

	// Steps counts the updates. Skipped windows do not count.
	Steps int64
	// Averaged counts the updates that the moving average of the weights has seen.
	Averaged   int64
	incomplete bool
}

// kernelUpdates are the updates as kernels on a GPU.
type kernelUpdates struct {
	kernels map[forms]*kernel // by the forms of a segment; nil without kernels
	fault   error             // the reason why the kernels of the rule are not used
}

// moments are the state of an optimizer: the vectors of its rule or, if it updates each parameter by itself, tensors.
type moments struct {
	state   []vector
	tensors tensorState
}

// scalars are the scalars of an update: those written by the host, and those written by the norm's graph.
type scalars struct {
	in, out  *words
	lr       word[float64]
	step     word[int64]
	gradNorm word[float32]
	finite   word[uint8]
	scale    word[float32] // from norm, for the updates
	inputs   map[string]*ort.Tensor

	constants map[float64]*ort.Tensor
	factored  map[float64]word[float64] // learning rates of groups, by factor
}

// newScalars allocates them for a rule, with room for more of both kinds.
func newScalars(m *memory, r rule, p manifest.Optimizer, moreIn, moreOut int) scalars {
	constants := r.scalars(p)
	constants["max_norm"] = p.GradClip
	s := scalars{
		in: m.words(2 + len(constants) + moreIn), out: m.words(3 + moreOut), constants: map[float64]*ort.Tensor{},
		factored: map[float64]word[float64]{},
	}
	s.lr, s.step = newWord[float64](m, s.in, manifest.F64), newWord[int64](m, s.in, manifest.I64)
	s.gradNorm, s.finite = newWord[float32](m, s.out, manifest.F32), newWord[uint8](m, s.out, manifest.Bool)
	s.scale = newWord[float32](m, s.out, manifest.F32)
	s.inputs = map[string]*ort.Tensor{
		"lr": s.lr.tensor, "step": s.step.tensor, "grad_scale": s.scale.tensor, "grad_norm": s.gradNorm.tensor,
		"finite": s.finite.tensor,
	}
	for name, v := range constants {
		s.inputs[name] = s.constant(m, v)
	}
	return s
}

// constant returns a value that does not change.
func (s *scalars) constant(m *memory, v float64) *ort.Tensor {
	t, ok := s.constants[v]
	if !ok {
		w := newWord[float64](m, s.in, manifest.F64)
		*w.value = v
		t, s.constants[v] = w.tensor, w.tensor
	}
	return t
}

// flag returns an input that does not change.
func (s *scalars) flag(m *memory, v uint8) *ort.Tensor {
	w := newWord[uint8](m, s.in, manifest.Bool)
	*w.value = v
	return w.tensor
}

// output returns a value that a graph writes and no one else reads.
func (s *scalars) output(m *memory) *ort.Tensor {
	return newWord[float32](m, s.out, manifest.F32).tensor
}

// NewOptimizer returns the optimizer p.Name for a player of a model. accumulating reports whether windows have
// more than one micro-batch. threads is the number of threads inside an operator, 0 means all cores.
func NewOptimizer(m *Model, player int, p manifest.Optimizer, accumulating bool, threads int) (*Optimizer, error) {
	r, ok := rules[p.Name]
	if !ok {
		return nil, fmt.Errorf("optimizer %q is unknown: there are %s", p.Name,
			strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	o := &Optimizer{memory: newMemory(m.device), model: m, player: m.players[player], params: p, rule: r}
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
		o.state = append(o.state, o.vector(o.player.arena, ortgraphs.State))
	}
	o.scalars = newScalars(&o.memory, o.rule, o.params,
		4+len(o.player.arena.Segments())+len(o.player.params)+2*len(o.params.Groups), 5)
	graphs := &graphs{memory: &o.memory, threads: threads, capturing: o.model.capturing, open: map[graph]*ort.Session{}}
	o.window.share.graphs = graphs
	o.bindWindow(graphs, accumulating)
	o.segments = trainedSegments(o.window.grads, o.params)
	if o.rule.kernel != nil && o.device.onGPU() && o.err == nil {
		var fault error
		fault, o.err = o.useKernels()
		o.fault = cmp.Or(o.fault, fault)
	}
	switch {
	case o.err != nil:
	case o.rule.state == nil:
		bindTensors(o, graphs)
	case o.kernels == nil:
		o.bindUpdates(graphs)
	}
	o.average.bind(o, graphs)
	o.window.kept.bind(o, graphs)
	if o.err == nil {
		o.err = o.send(o.in) // the constants; Step sends changed values again
	}
}

// Step queues the end of a window: it divides the sum of gradients by the sum of the weights, clips it, and updates the
// weights. If loss or gradients are not finite, or the sum of weights is 0, it changes nothing. Outcome returns what
// happened, after a Fetch that follows Step and before the next Step.
func (o *Optimizer) Step(lr float64) error {
	o.setRate(lr)
	*o.step.value = o.Steps + 1
	o.average.next(o.Averaged)
	if err := errors.Join(
		o.send(o.in), o.device.Timer.begin(Optimizing), o.window.share.sum(&o.memory),
		o.window.measure(&o.memory, o.window.total), o.receive(o.out),
	); err != nil {
		return err
	}
	o.incomplete = true
	if o.kernels != nil {
		for _, g := range o.segments {
			k := o.kernels[g.forms]
			if err := k.update(g.Range, kernelBlocks, o.params, lr*g.factor, g.decay, o.Steps+1); err != nil {
				return err
			}
		}
	}
	for _, all := range [][]update{o.updates, o.average.updates} {
		for _, u := range all {
			if err := o.run(u.execution); err != nil {
				return err
			}
		}
	}
	return errors.Join(o.window.kept.end(o), o.device.Timer.end(Optimizing))
}

// Outcome returns the result of the last Step, which is done: the gradient norm before clipping, and whether weights
// were updated.
func (o *Optimizer) Outcome() (gradNorm float64, updated bool) {
	o.incomplete = false
	if updated = *o.finite.value != 0; updated {
		o.Steps++
		o.Averaged++
	}
	return float64(*o.gradNorm.value), updated
}

// Incomplete reports whether an update may be incomplete: weights and moments are those of no step, and must not be
// saved.
func (o *Optimizer) Incomplete() bool { return o.incomplete }

// InKernel reports whether an update is one kernel on the GPU, and the reason if the optimizer's kernel is not used.
func (o *Optimizer) InKernel() (yes bool, fault error) { return o.kernels != nil, o.fault }

// Pull updates Moments. On the CPU they are always up to date.
func (o *Optimizer) Pull() error { return each(o, o.pull) }

// Push copies what was written to Moments back to the device.
func (o *Optimizer) Push() error { return each(o, o.push) }

// each moves the optimizer's state.
func each(o *Optimizer, move func(*block) error) error {
	for i := range o.state {
		if err := move(&o.state[i].block); err != nil {
			return err
		}
	}
	if len(o.tensors.tensors) == 0 {
		return nil
	}
	return move(&o.tensors.block)
}

// Moments returns the optimizer's state as tensors with the names of checkpoints: "exp_avg.<parameter>" and so on.
func (o *Optimizer) Moments() []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for i, name := range o.rule.state {
		out = append(out, o.player.views(name, o.state[i])...)
	}
	return append(out, o.tensors.views()...)
}

// Bytes returns the memory of the state and the accumulated gradients.
func (o *Optimizer) Bytes() int {
	n := o.window.acc.size + o.tensors.size
	for _, s := range o.state {
		n += s.size
	}
	return n
}
