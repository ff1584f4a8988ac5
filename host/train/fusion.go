package train

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// fusedGraphs are a graph with its regions as kernels: one for each bucket, because its sizes are fixed.
type fusedGraphs struct {
	model    *Model
	player   *player
	captures bool              // runs may be captured as CUDA graphs
	config   ort.SessionConfig // apart from the model
	form     fused.Form
	plans    []*fused.Plan // by bucket
	programs fused.Programs
	proofs   Proofs
	faults   []map[int]error // by bucket: why regions run without their kernels
	sessions []*ort.Session  // by bucket

	exported *ort.Session // the graph as exported, until the kernels are proved
	proving  openProofs   // of the kernels
	inputs   [][]tensors  // by slot and bucket
	outputs  tensors

	compared
	accuracy
	largest *lifetime.Plan // of the tensors of the largest bucket
	arena   int64          // the planned size of ONNX Runtime's arena
	times   FusionTimes
	costs   func(player string) (cost.Settings, bool)
}

// compared is what the comparison with the graph as exported has shown.
type compared struct {
	unproved   map[string]bool // results that show nothing of a kernel, because they are zero or not finite
	distances  []float64       // by bucket: the largest difference of the results, relative to their norm
	roundings  []float64       // by bucket: that of the graph as exported after other roundings; 0 if not measured
	distrusted map[int]error   // why buckets run as exported: the graph is wrong without a wrong kernel
}

// Form says how the training graph of a player, or the evaluation graph, runs on a GPU.
type Form struct {
	Player string
	// Fusion describes the fused graph; nil if the graph runs as exported.
	Fusion *Fusion
	// Unfused is the reason why it runs as exported although there is a compiler.
	Unfused error
}

// Fusion describes how a graph is fused.
type Fusion struct {
	// Kernels is the number of kernels of the largest bucket, Left says why its other regions stay plain.
	Kernels int
	Left    []string
	// Refused says, by bucket, which convolutions no library computes, and why: their windows are in memory.
	Refused []string
	// UnfusedBytes is how much more a step of the largest bucket moves through memory because regions are plain.
	UnfusedBytes int64
	// Faulty names the regions whose kernels cannot be compiled or launched, or gave other results than the graph as
	// exported. They stay plain.
	Faulty []string
	// AsExported names the buckets whose fused graph gave other results than the graph as exported, although each
	// kernel is right. All of such a bucket stays plain.
	AsExported []string
	// Predicted is what a step of the largest bucket is expected to take; nil if that is not known.
	Predicted *cost.Prediction
	// Unproved names the results, of the graph or of a region, that say nothing of a bucket's kernels, because they are
	// zero or not finite in the graph as exported, or mostly roundings.
	Unproved []string
	// Narrowed is the number of attentions that are rounded to bf16 on request.
	Narrowed int
	// ArenaBytes is the planned size of ONNX Runtime's arena for training and evaluation of the largest bucket.
	ArenaBytes int64
	// Distances are the largest differences between the results of the two graphs, by bucket, relative to the norm of a
	// result.
	Distances []float64
	// Roundings are the differences of the graph as exported from itself after other roundings, where a distance is
	// above the precision's own tolerance; elsewhere 0.
	Roundings []float64
	Times     FusionTimes
}

// FusionTimes is how long the parts of fusing a graph took.
type FusionTimes struct{ Plan, Compile, Open, Proof time.Duration }

// newFusedGraphs plans the fused graphs of all buckets, and compiles and loads their kernels. config is that of the
// graph as exported.
func newFusedGraphs(m *Model, p *player, choice FuseConfig, config ort.SessionConfig) (*fusedGraphs, error) {
	f := &fusedGraphs{
		model: m, player: p, config: config, form: choice.Form, proofs: choice.Proofs, costs: choice.Costs,
		compared: compared{unproved: map[string]bool{}, distrusted: map[int]error{}},
	}
	began := time.Now()
	if err := f.makePlans(); err != nil {
		return nil, err
	}
	planned := time.Now()
	if err := f.compile(choice.Compiler); err != nil {
		return nil, err
	}
	m.add(f.programs.Close)
	f.findAccuracy()
	if p.beside != nil {
		finished, err := f.plans[len(f.plans)-1].Finished()
		if err != nil {
			return nil, err
		}
		p.beside.divide(finished)
	}
	f.times = FusionTimes{Plan: planned.Sub(began), Compile: time.Since(planned)}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// compile compiles the plans' programs. Convolutions that the library cannot compute get windows in memory, in new
// plans with other programs.
func (f *fusedGraphs) compile(c fused.Compiler) (err error) {
	if f.programs, err = c.Compile(f.sources()); err != nil {
		return err
	}
	last := len(f.plans) - 1
	computable := slices.Clone(f.plans)
	for i, p := range f.plans {
		if err == nil {
			computable[i], err = p.Computable(f.programs)
		}
	}
	if err == nil && slices.Equal(computable, f.plans) {
		return nil
	}
	if err = errors.Join(err, f.programs.Close()); err != nil {
		return err
	}
	f.plans = computable
	if f.largest, err = f.plans[last].Lifetimes(); err != nil {
		return err
	}
	f.programs, err = c.Compile(f.sources())
	return err
}

// load loads the plans' programs. The error is that of a program if none is usable.
func (f *fusedGraphs) load() error {
	usable, refused := 0, error(nil)
	for bucket, p := range f.plans {
		f.faults[bucket] = p.Load(f.programs)
		usable += p.Regions() - len(p.Left) - len(f.faults[bucket])
		for _, region := range slices.Sorted(maps.Keys(f.faults[bucket])) {
			refused = cmp.Or(refused, f.faults[bucket][region])
		}
	}
	if usable > 0 {
		return nil
	}
	return refused
}

// openAll opens the sessions of all buckets. exported runs the graph as exported.
func (f *fusedGraphs) openAll(exported *ort.Session) {
	f.exported = exported
	began := time.Now()
	for i := range f.plans {
		f.sessions = append(f.sessions, f.open(i))
	}
	f.beginProofs()
	f.times.Open = time.Since(began)
}

// closeAll closes all sessions.
func (f *fusedGraphs) closeAll() (err error) {
	err = f.closeProofs()
	for _, s := range append(f.sessions, f.exported) {
		err = errors.Join(err, closeSession(&f.model.memory, s))
	}
	f.sessions, f.exported = nil, nil
	return err
}

// makePlans plans all buckets in parallel.
func (f *fusedGraphs) makePlans() error {
	buckets := len(f.model.layouts)
	f.plans, f.faults = make([]*fused.Plan, buckets), make([]map[int]error, buckets)
	f.distances, f.roundings = make([]float64, buckets), make([]float64, buckets)
	all := allCores()
	for i := range f.plans {
		all.Go(func() (err error) {
			if f.plans[i], err = fused.NewPlan(
				f.config.Model, bucketSizes(f.model.inputs, &f.model.layouts[i]), f.form,
			); err != nil {
				return fmt.Errorf("fuse %s for bucket %d: %w", f.config.Name, i, err)
			}
			if i < buckets-1 {
				return nil
			}
			f.largest, err = f.plans[i].Lifetimes()
			return err
		})
	}
	return all.Wait()
}

// sources returns the programs of all buckets, each once.
func (f *fusedGraphs) sources() (list []string) {
	for _, p := range f.plans {
		list = append(list, p.Sources()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// open opens the session of a bucket, without the kernels that are known to be faulty.
func (f *fusedGraphs) open(bucket int) *ort.Session {
	m := f.model
	if m.err != nil {
		return nil
	}
	c := f.config
	c.Name = fmt.Sprintf("%s, bucket %d, fused", c.Name, bucket)
	c.Model, c.Kernels, m.err = f.plans[bucket].Link(func(region int) bool {
		return f.faults[bucket][region] != nil
	}, f.player.beside.hooks()...)
	if f.captures && m.err == nil {
		m.checkCapture(f.config.Name, c.Model)
	}
	return m.open(c, f.captures && m.capturing)
}

// bind returns the execution of a bucket's fused graph for a slot.
func (f *fusedGraphs) bind(slot, bucket int, inputs, outputs tensors) execution {
	if f.model.err != nil {
		return execution{}
	}
	if slot == len(f.inputs) {
		f.inputs = append(f.inputs, nil)
	}
	f.inputs[slot], f.outputs = append(f.inputs[slot], maps.Clone(inputs)), outputs
	return f.model.execution(f.sessions[bucket], inputs, outputs)
}

// rebind makes the steps of a bucket use another session, and closes the one that they used.
func (f *fusedGraphs) rebind(bucket int, s *ort.Session) error {
	m := f.model
	closed := closeSession(&m.memory, f.sessions[bucket])
	f.sessions[bucket] = s
	for slot, inputs := range f.inputs {
		f.player.runs[slot][bucket] = m.execution(s, inputs[bucket], f.outputs)
	}
	return errors.Join(m.err, closed)
}

// bucketSizes returns the sizes of the graph's symbols in a bucket.
func bucketSizes(inputs []manifest.TensorSpec, layout *ring.Layout) map[string]int {
	sizes := map[string]int{}
	for _, in := range inputs {
		t, ok := layout.Find(in.Name)
		if !ok {
			continue
		}
		for i, d := range in.Shape {
			if d.Symbol != "" {
				sizes[d.Symbol] = t.Shape[i]
			}
		}
	}
	return sizes
}

// narrowed is the number of attentions of a bucket that are rounded to bf16.
func (f *fusedGraphs) narrowed() int { return f.plans[0].Narrowed }

// returns reports whether the graph has an output.
func (f *fusedGraphs) returns(output string) bool {
	return slices.ContainsFunc(f.sessions[0].Outputs(), func(o ort.ValueInfo) bool { return o.Name == output })
}

// form is that of the graph that is tried.
func (t *trial) form() Form { return Form{t.player.name, t.fusion.describe(), t.unfused} }

// describe returns how the graph is fused; nil if it is not.
func (f *fusedGraphs) describe() *Fusion {
	if f == nil {
		return nil
	}
	out := &Fusion{
		Narrowed: f.narrowed(), Unproved: slices.Sorted(maps.Keys(f.unproved)), ArenaBytes: f.arena,
		Distances: f.distances, Roundings: f.roundings, Times: f.times,
	}
	for bucket, p := range f.plans {
		if fault := f.distrusted[bucket]; fault != nil {
			out.AsExported = append(out.AsExported, fmt.Sprintf("bucket %d: %v", bucket, fault))
		}
		for _, region := range slices.Sorted(maps.Keys(f.faults[bucket])) {
			out.Faulty = append(out.Faulty,
				fmt.Sprintf("bucket %d: %s: %v", bucket, p.Describe(region), f.faults[bucket][region]))
		}
		for _, refused := range p.Refused() {
			out.Refused = append(out.Refused, fmt.Sprintf("bucket %d: %s", bucket, refused))
		}
	}
	last := len(f.plans) - 1
	largest := f.plans[last]
	out.Left = largest.Left
	out.UnfusedBytes = int64(largest.Unfused(func(region int) bool {
		return f.faults[last][region] != nil || f.distrusted[last] != nil
	}))
	if f.distrusted[last] == nil {
		out.Kernels = largest.Regions() - len(largest.Left) - len(f.faults[last])
		out.Predicted = f.predict()
	}
	return out
}

// predict returns what a step of the largest bucket is expected to take.
func (f *fusedGraphs) predict() *cost.Prediction {
	if f.costs == nil {
		return nil
	}
	settings, ok := f.costs(f.player.name)
	if !ok {
		return nil
	}
	switch m := f.model; {
	case m.capturing:
	case m.uncaptured != nil:
		settings.Uncaptured = m.uncaptured.Error()
	default:
		settings.Uncaptured = "they are off"
	}
	last := len(f.plans) - 1
	return f.plans[last].Predict(settings, f.faults[last])
}
