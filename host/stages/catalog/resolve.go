package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Types is what a pipeline is checked against.
type Types struct {
	// Dataset holds every tensor that the host can produce, by name, each with its lengths tensor (Lengths).
	Dataset map[string]manifest.TensorSpec
	// Inputs are the batch inputs of the training graph.
	Inputs   []manifest.TensorSpec
	Buckets  []manifest.Bucket
	Features manifest.Features
	// Files are the bundle's files with their SHA-256, and Inference its inference graphs.
	Files     map[string]string
	Inference []manifest.InferenceGraph
	// RequireChecksums refuses plugins that are not verified.
	RequireChecksums bool
	// DataGPU means that the plugins have a GPU. Without it, stages that require a GPU are refused. With it, stages
	// that use a GPU are refused if their program for it is missing.
	DataGPU bool
}

// Resolved is a pipeline in which every name is resolved. All tensors of a slot are Inputs or Intermediates.
type Resolved struct {
	// Instances are in pipeline order.
	Instances []Instance
	// Plugins are the plugins of the instances, in the order of their first use.
	Plugins []Entry
	// Inputs are the inputs of the graph, in its order.
	Inputs []manifest.TensorSpec
	// Dataset are the tensors that the host has to produce: those that are consumed. Graph inputs come first, in their
	// order and as the graph declares them, then the others by name.
	Dataset []manifest.TensorSpec
	// Intermediates are the tensors that only stages use: first those of the data set, by name, then those that stages
	// produce, in pipeline order.
	Intermediates []manifest.TensorSpec
	// MaxGrowth is the largest factor by which all stages together lengthen a row.
	MaxGrowth float64
}

// UsesGPU reports whether any instance of a plugin, an index into Plugins, can use a GPU.
func (r *Resolved) UsesGPU(plugin int) bool {
	return slices.ContainsFunc(r.Instances, func(i Instance) bool {
		return i.Plugin == plugin && i.Stage.UsesGPU()
	})
}

// Instance is an instance of the pipeline with the declaration of its stage.
type Instance struct {
	Name   string
	Stage  manifest.Stage
	Config map[string]any
	// Files are the bundle's files that Config names, with their SHA-256.
	Files map[string]string
	// Data are the folders that the stage may read, by their names in plugin.json. Resolve sets only their paths.
	Data map[string]DataFolder
	// Inputs and Outputs map the stage's ports to tensors.
	Inputs, Outputs map[string]string
	// Recounts maps lengths tensors that the instance writes and only the host reads to the lengths tensors that the
	// graph uses for the same rows. In every batch the two must be equal. It is nil if the instance uses the graph's
	// lengths.
	Recounts map[string]string
	// Plugin is an index into Resolved.Plugins. Index counts the instances of that plugin, as in ConfigureRequest.
	Plugin, Index int
	// P is the probability that a row of a training batch gets the instance, nil for 1. Group is the entry of the
	// pipeline of which the instance is the member with the number Member, nil for none.
	P      *manifest.Probability
	Group  *manifest.StageInstance
	Member int
}

// Chosen reports whether the rows of training batches that get the instance are chosen.
func (i *Instance) Chosen() bool { return i.P != nil || i.Group != nil }

// Resolve type-checks a pipeline: from the tensors of the data set, stage by stage, to the inputs of the graph. It
// unifies ports with tensors: each symbol of a stage gets one meaning within an instance (T_wav may be T_ref, n_mels is
// that of the feature contract). The error names the instance, the port, the tensor, and what would fit.
func Resolve(pipeline []manifest.StageInstance, entries []Entry, types Types) (*Resolved, error) {
	r := &resolver{
		types: types, entries: entries, tensors: map[string]*tensor{}, graph: map[string]manifest.TensorSpec{},
	}
	r.out.MaxGrowth, r.out.Inputs = 1, types.Inputs
	if err := manifest.CheckPipeline(pipeline); err != nil {
		return nil, err
	}
	if err := r.declare(); err != nil {
		return nil, err
	}
	steps := manifest.Steps(pipeline)
	for _, s := range steps {
		if err := r.add(s, steps); err != nil {
			return nil, fmt.Errorf("pipeline: instance %q: %w", s.Name, err)
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	for i := range pipeline {
		r.out.MaxGrowth *= r.growth(&pipeline[i])
	}
	return &r.out, nil
}

type resolver struct {
	types   Types
	entries []Entry
	graph   map[string]manifest.TensorSpec // inputs of the graph
	tensors map[string]*tensor             // available at this point of the pipeline
	made    []string                       // intermediates produced by stages, in order
	out     Resolved
}

// tensor is a tensor that is available at a point of the pipeline.
type tensor struct {
	spec manifest.TensorSpec
	// maker is the instance that wrote it last, or empty for the data set. port is the maker's port.
	maker, port string
	used        bool // something reads it, or has read it
	read        bool // something reads what maker wrote
}

func (t *tensor) consume() { t.used, t.read = true, true }

// declare makes the tensors of the data set available, as declared by the graph if it declares them.
func (r *resolver) declare() error {
	for name, spec := range r.types.Dataset {
		spec.Name = name
		r.tensors[name] = &tensor{spec: spec}
	}
	var errs []error
	for _, in := range r.types.Inputs {
		r.graph[in.Name] = in
		if !in.FromHost() {
			continue
		}
		t, ok := r.tensors[in.Name]
		switch {
		case !ok:
			errs = append(errs,
				fmt.Errorf("graph input %q %s%s has origin %s, but the host cannot make it; it can make %s", in.Name,
					in.DType, in.Shape, in.Origin, list(slices.Sorted(maps.Keys(r.types.Dataset)))))
		case t.spec.DType != in.DType || !slices.Equal(t.spec.Shape, in.Shape):
			errs = append(errs, fmt.Errorf("graph input %q is %s%s, but the host makes %s%s",
				in.Name, in.DType, in.Shape, t.spec.DType, t.spec.Shape))
		default:
			t.spec = in
			t.consume()
		}
	}
	return errors.Join(errs...)
}

// add checks one instance and appends it.
func (r *resolver) add(s manifest.Step, pipeline []manifest.Step) error {
	entry, stage, err := r.find(s.Stage)
	if err != nil {
		return err
	}
	if err := manifest.ValidateConfig(stage, s.Config); err != nil {
		return err
	}
	files, err := r.files(stage, s.Config)
	if err != nil {
		return err
	}
	if stage.GPU == manifest.GPURequired && !r.types.DataGPU {
		return hint.Errorf("train with --data-gpu N --model-gpu M, which give the plugins a GPU, or use another stage",
			"stage %q of plugin %s needs a GPU, but the plugins run on the CPU", s.Stage, entry.Name())
	}
	if file := entry.missingGPUProgram(); file != "" && r.types.DataGPU && stage.UsesGPU() {
		return hint.Errorf("build it; with --data-gpu cpu the plugins compute on the CPU",
			"plugin %s is given the data GPU, but its program for a GPU is missing: %s", entry.Name(), file)
	}
	data, err := dataOf(&s.StageInstance, &stage)
	if err != nil {
		return err
	}
	i := Instance{
		Name: s.Name, Stage: stage, Config: s.Config, Files: files, Data: data, Inputs: s.Inputs, Outputs: s.Outputs,
		P: s.P, Group: s.Group, Member: s.Member,
	}
	if i.Chosen() && stage.Kind != manifest.Augment {
		return notChosen(&i)
	}
	if err := r.bindPorts(&i, entry, pipeline); err != nil {
		return err
	}
	i.Plugin = slices.IndexFunc(r.out.Plugins, func(e Entry) bool { return e.Dir == entry.Dir })
	if i.Plugin < 0 {
		i.Plugin = len(r.out.Plugins)
		r.out.Plugins = append(r.out.Plugins, *entry)
	}
	for _, had := range r.out.Instances {
		if had.Plugin == i.Plugin {
			i.Index++
		}
	}
	r.out.Instances = append(r.out.Instances, i)
	return nil
}

// find returns the stage that a pipeline names "stage" or "plugin/stage". It includes plugins that cannot be started: a
// name must not change its meaning when a folder breaks.
func (r *resolver) find(name string) (*Entry, manifest.Stage, error) {
	plugin, short, qualified := strings.Cut(name, "/")
	if !qualified {
		short = name
	}
	var all, names, candidates, unread []string // names are as typed: with the plugin or without it
	var entry *Entry
	var stage manifest.Stage
	for i := range r.entries {
		e := &r.entries[i]
		if e.Manifest == nil {
			if e.State == Broken {
				unread = append(unread, fmt.Sprintf("the stages of plugin %s, which is broken: %s", e.Dir, e.Reason))
			}
			continue
		}
		for _, s := range e.Manifest.Stages {
			full := e.Manifest.ID + "/" + s.Name
			all = append(all, full)
			if names = append(names, s.Name); qualified {
				names[len(names)-1] = full
			}
			if s.Name == short && (!qualified || e.Manifest.ID == plugin) {
				candidates = append(candidates, full)
				entry, stage = e, s
			}
		}
	}
	slices.Sort(candidates)
	candidates = slices.Compact(candidates) // two folders of one plugin are both broken, with this reason
	switch {
	case len(candidates) == 0 && len(all)+len(unread) == 0:
		return nil, stage, hint.Errorf(Advice(), "no plugin has a stage %q: there are no plugins", name)
	case len(candidates) == 0:
		slices.Sort(all)
		err := fmt.Errorf("no plugin has a stage %q; there are %s", name,
			strings.Join(append(slices.Compact(all), unread...), ", "))
		slices.Sort(names)
		advice := missingHint(name, r.entries)
		switch {
		case advice != "":
		case len(unread) > 0:
			advice = brokenHint
		default:
			advice = hint.DidYouMean(name, slices.Compact(names))
		}
		if advice != "" {
			err = hint.Errorf(advice, "%w", err)
		}
		return nil, stage, err
	case len(candidates) > 1:
		return nil, stage, hint.Errorf(ambiguousHint(short, candidates), "stage %q is ambiguous: write %s", name,
			strings.Join(candidates, " or "))
	case !entry.Startable():
		return nil, stage,
			hint.Errorf(entry.Hint, "stage %q: plugin %s is %s: %s", name, entry.Dir, entry.State, entry.Reason)
	case r.types.RequireChecksums && entry.State != Verified:
		return nil, stage,
			hint.Errorf("write its "+manifest.SumFile+" with sha256sum, or run without --require-checksums",
				"stage %q: plugin %s is %s: %s", name, entry.Dir, entry.State, entry.Reason)
	}
	return entry, stage, nil
}

// finish checks that no tensor is missing and none is unused, and collects what the host has to produce.
func (r *resolver) finish() error {
	var errs []error
	for _, in := range r.types.Inputs {
		if t, ok := r.tensors[in.Name]; ok && (in.FromHost() || t.maker != "") {
			t.consume()
		} else {
			errs = append(errs, fmt.Errorf("graph input %q %s%s: no stage of the pipeline makes it; %s", in.Name,
				in.DType, in.Shape, r.makers(in)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.tensors)) {
		t := r.tensors[name]
		if t.maker != "" && !t.read {
			errs = append(errs, fmt.Errorf(
				"pipeline: instance %q: output port %q writes tensor %q, but no later stage and no graph input uses it",
				t.maker, t.port, name))
		}
		if symbol := r.unknownSymbol(t.spec.Shape); t.used && symbol != "" {
			errs = append(errs, fmt.Errorf("tensor %q %s%s: not every bucket gives %s a value", name, t.spec.DType,
				t.spec.Shape, symbol))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, in := range r.types.Inputs {
		if in.FromHost() {
			r.out.Dataset = append(r.out.Dataset, r.tensors[in.Name].spec)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.types.Dataset)) {
		t := r.tensors[name]
		if _, ok := r.graph[name]; t.used && !ok {
			r.out.Dataset = append(r.out.Dataset, t.spec)
			r.out.Intermediates = append(r.out.Intermediates, t.spec)
		}
	}
	for _, name := range r.made {
		r.out.Intermediates = append(r.out.Intermediates, r.tensors[name].spec)
	}
	return nil
}

// makers lists the stages that could produce a graph input.
func (r *resolver) makers(in manifest.TensorSpec) string {
	var can []string
	for _, e := range r.entries {
		if e.Manifest == nil {
			continue
		}
		for _, s := range e.Manifest.Stages {
			for _, port := range s.Outputs {
				b := newBindings(r.types.Features)
				if s.Kind == manifest.Preprocess && b.unify(port, in) == "" {
					can = append(can, fmt.Sprintf("%s/%s (port %s)", e.Manifest.ID, s.Name, port.Name))
				}
			}
		}
	}
	if len(can) == 0 {
		return "no plugin has a stage that could"
	}
	return "stages that could: " + strings.Join(can, ", ")
}

// unknownSymbol returns a symbol to which not every bucket gives a value.
func (r *resolver) unknownSymbol(shape manifest.Shape) string {
	for _, d := range shape {
		if d.Symbol == "" || d.Symbol == manifest.BatchSymbol {
			continue
		}
		for _, b := range r.types.Buckets {
			if _, ok := b[d.Symbol]; !ok {
				return d.Symbol
			}
		}
	}
	return ""
}

// list formats a list of names.
func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
