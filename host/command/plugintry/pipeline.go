package plugintry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// way is the part of a pipeline that ends with one stage.
type way struct {
	resolved *catalog.Resolved
	inputs   []manifest.TensorSpec // what its instances write
	target   catalog.Instance
}

// find resolves the way to a stage, "stage" or "plugin/stage". An augmentation is where --augment puts it, any other
// stage where the bundle's pipeline has it.
func find(name string, bundle *manifest.Bundle, entries []catalog.Entry, values map[string]any) (*way, error) {
	pipeline := bundle.Pipeline
	at := slices.IndexFunc(pipeline,
		func(i manifest.StageInstance) bool { return i.Stage == name || strings.HasSuffix(name, "/"+i.Stage) })
	if at < 0 {
		longer, err := catalog.Augment(pipeline, []string{name}, entries)
		if err != nil {
			return nil, hint.Errorf(cmp.Or(hint.Of(err), "with --graph, name a bundle whose pipeline has the stage"),
				"%s", strings.TrimPrefix(err.Error(), "--augment "+name+": "))
		}
		pipeline = longer
		at = slices.IndexFunc(pipeline, func(i manifest.StageInstance) bool { return i.Stage == name })
	}
	part := leading(pipeline[:at+1])
	last := &part[len(part)-1]
	if len(values) > 0 {
		last.Config = changed(last.Config, values)
	}
	w := &way{}
	for _, i := range part {
		w.declare(i, bundle, entries)
	}
	var err error
	w.resolved, err = catalog.Resolve(part, entries, catalog.Types{
		Dataset: dataset.Specs(), Inputs: w.inputs,
		Buckets:  []manifest.Bucket{bundle.Fit(manifest.Bucket{manifest.SymbolWav: 1, manifest.SymbolText: 1})},
		Features: bundle.Features, Files: bundle.Files, Inference: bundle.Inference,
	})
	if err != nil {
		return nil, err
	}
	w.target = w.resolved.Instances[len(w.resolved.Instances)-1]
	return w, nil
}

// changed returns a configuration with other values for some keys.
func changed(config, values map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, config)
	maps.Copy(all, values)
	return all
}

// leading keeps the instances that make what the last one reads.
func leading(pipeline []manifest.StageInstance) []manifest.StageInstance {
	needed := map[string]bool{}
	var part []manifest.StageInstance
	for k := len(pipeline) - 1; k >= 0; k-- {
		i := pipeline[k]
		wanted := part == nil
		for _, tensor := range i.Outputs {
			wanted = wanted || needed[tensor]
		}
		if !wanted {
			continue
		}
		for _, tensor := range i.Inputs {
			needed[tensor] = true
		}
		part = append(part, i)
	}
	slices.Reverse(part)
	return part
}

// declare adds what an instance writes to the inputs, as the graph declares it, or else the stage.
func (w *way) declare(i manifest.StageInstance, bundle *manifest.Bundle, entries []catalog.Entry) {
	known := slices.Clone(bundle.Inputs)
	for _, spec := range dataset.Specs() {
		known = append(known, spec)
	}
	for _, e := range entries {
		if e.Manifest == nil {
			continue
		}
		stage, _ := e.Manifest.Stage(i.Stage[strings.IndexByte(i.Stage, '/')+1:])
		for _, port := range stage.Outputs {
			port.Name = i.Outputs[port.Name]
			known = append(known, port)
		}
	}
	for _, tensor := range i.Outputs {
		at := slices.IndexFunc(known, func(s manifest.TensorSpec) bool { return s.Name == tensor })
		if at < 0 || slices.ContainsFunc(w.inputs, func(s manifest.TensorSpec) bool { return s.Name == tensor }) {
			continue
		}
		spec := known[at]
		spec.Lengths = "" // those of the stage count
		w.inputs = append(w.inputs, spec)
	}
	slices.SortFunc(w.inputs, func(a, b manifest.TensorSpec) int { return strings.Compare(a.Name, b.Name) })
}

// shown is an output of the target that can be heard or seen.
type shown struct {
	port, tensor, lengths string
	sound                 bool
}

// outputs returns the outputs of the target that can be heard or seen, in the order of plugin.json.
func (w *way) outputs() (all []shown) {
	specs := dataset.Specs()
	for _, p := range w.target.Stage.Outputs {
		s := shown{port: p.Name, tensor: w.target.Outputs[p.Name], lengths: w.target.Outputs[p.Lengths]}
		if s.lengths == "" {
			s.lengths = w.target.Inputs[p.Lengths]
		}
		if p.DType != manifest.F32 || s.lengths == "" || len(p.Shape) < 2 || len(p.Shape) > 3 {
			continue
		}
		s.sound = specs[s.tensor].DType == manifest.F32 || len(p.Shape) == 2 && p.Shape[1].Symbol == manifest.SymbolWav
		all = append(all, s)
	}
	return all
}

// choose returns the outputs that a file of that ending can hold.
func (w *way) choose(ending string) ([]shown, error) {
	all := w.outputs()
	chosen := slices.DeleteFunc(slices.Clone(all), func(s shown) bool { return s.sound != (ending == ".wav") })
	name := w.target.Stage.Name
	switch {
	case ending != ".wav" && ending != ".png":
		return nil, hint.Errorf("--out heard.wav for a sound, --out seen.png for a picture",
			"--out ends neither with .wav nor with .png")
	case len(all) == 0:
		return nil, fmt.Errorf("stage %s writes neither a waveform nor a matrix of f32", name)
	case len(chosen) == 0 && ending == ".wav":
		return nil, hint.Errorf("--out seen.png shows them as a picture",
			"stage %s writes no waveform but %s, which this program cannot make audible", name, ports(all))
	case len(chosen) == 0:
		return nil, hint.Errorf("--out heard.wav", "stage %s writes %s, which is heard and not seen", name, ports(all))
	}
	return chosen, nil
}

func ports(all []shown) string {
	var names []string
	for _, s := range all {
		names = append(names, s.port)
	}
	return strings.Join(names, " and ")
}
