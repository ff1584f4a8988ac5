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

// way is the part of a pipeline that ends with a stage.
type way struct {
	resolved *catalog.Resolved
	inputs   []manifest.TensorSpec // what its instances write
	target   catalog.Instance      // the last one
	asked    []manifest.Step       // of the pipeline, with what chooses the rows that a run gives them
}

// find resolves the way to the named stages, "stage" or "plugin/stage", and through those before them that make their
// inputs. The pipeline is the given one, whose instances may be named as well, or else the bundle's: then an
// augmentation is where --augment puts it. Without names, the way is all of the pipeline.
func find(
	names []string, given []manifest.StageInstance, bundle *manifest.Bundle, entries []catalog.Entry,
	values map[string]any, data map[string]string,
) (*way, error) {
	pipeline, named, err := place(names, given, bundle, entries)
	if err != nil {
		return nil, err
	}
	part, err := catalog.PlaceData(leading(pipeline, named), data, entries)
	if err != nil {
		return nil, err
	}
	configure(part, named, entries, values)
	w := &way{asked: manifest.Steps(bundle.Pipeline)}
	if given != nil {
		w.asked = manifest.Steps(given)
	}
	for _, i := range part {
		w.declare(i, bundle, entries)
	}
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

// place returns the pipeline with all of the named stages, and the names of their instances.
func place(
	names []string, given []manifest.StageInstance, bundle *manifest.Bundle, entries []catalog.Entry,
) (pipeline []manifest.StageInstance, named map[string]bool, err error) {
	pipeline, named = certain(bundle.Pipeline, names), map[string]bool{}
	if given != nil {
		pipeline = certain(given, nil) // a stage before the named ones changes what they get
	}
	var added []string
	for _, name := range names {
		at := slices.IndexFunc(pipeline, func(i manifest.StageInstance) bool { return i.Name == name && given != nil })
		if at < 0 {
			at = slices.IndexFunc(pipeline, func(i manifest.StageInstance) bool { return isStage(i, name) })
		}
		switch {
		case at >= 0:
			named[pipeline[at].Name] = true
		case given != nil:
			return nil, nil, hint.Errorf("it has "+strings.Join(instances(certain(given, nil)), ", "),
				"the pipeline of --pipeline has no stage %q", name)
		default:
			added = append(added, name)
		}
	}
	for _, name := range added {
		longer, err := catalog.Augment(pipeline, []string{name}, entries)
		if err != nil {
			return nil, nil, hint.Errorf(
				cmp.Or(hint.Of(err), "with --graph, name a bundle whose pipeline has the stage"), "%s",
				strings.TrimPrefix(err.Error(), "--augment "+name+": "))
		}
		had := instances(pipeline)
		for _, i := range longer {
			named[i.Name] = named[i.Name] || !slices.Contains(had, i.Name)
		}
		pipeline = longer
	}
	if len(names) == 0 {
		for _, i := range pipeline {
			named[i.Name] = true
		}
	}
	return pipeline, named, nil
}

// isStage reports whether an instance is of the stage that a name is of.
func isStage(i manifest.StageInstance, name string) bool {
	return i.Stage == name || strings.HasSuffix(name, "/"+i.Stage)
}

// certain returns the instances of a pipeline in a row, each for every row: without names all of them, otherwise those
// that are named or that no row does without.
func certain(pipeline []manifest.StageInstance, names []string) (all []manifest.StageInstance) {
	for _, s := range manifest.Steps(pipeline) {
		i := s.StageInstance
		named := slices.ContainsFunc(names, func(name string) bool { return i.Name == name || isStage(i, name) })
		if named || len(names) == 0 || i.P == nil && s.Group == nil {
			i.P, i.Weight = nil, nil
			all = append(all, i)
		}
	}
	return all
}

// instances returns the names of the instances of a pipeline.
func instances(pipeline []manifest.StageInstance) (names []string) {
	for _, i := range pipeline {
		names = append(names, i.Name)
	}
	return names
}

// configure gives each value to the named instances whose stage has a key of that name, and to the last one if there is
// none, so that it is refused there.
func configure(
	part []manifest.StageInstance, named map[string]bool, entries []catalog.Entry, values map[string]any,
) {
	for key, value := range values {
		taken := false
		for k := range part {
			last := k == len(part)-1
			if named[part[k].Name] && takes(part[k].Stage, key, entries) || last && !taken {
				part[k].Config = changed(part[k].Config, map[string]any{key: value})
				taken = true
			}
		}
	}
}

// takes reports whether the configuration of a stage has a key.
func takes(name, key string, entries []catalog.Entry) bool {
	id, stage, qualified := strings.Cut(name, "/")
	if !qualified {
		stage = name
	}
	for _, e := range entries {
		if e.Manifest == nil || qualified && e.Manifest.ID != id {
			continue
		}
		s, _ := e.Manifest.Stage(stage)
		properties, _ := s.Config["properties"].(map[string]any)
		if _, ok := properties[key]; ok {
			return true
		}
	}
	return false
}

// changed returns a configuration with other values for some keys.
func changed(config, values map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, config)
	maps.Copy(all, values)
	return all
}

// leading keeps the named instances, and those that make what they read.
func leading(pipeline []manifest.StageInstance, named map[string]bool) []manifest.StageInstance {
	needed := map[string]bool{}
	var part []manifest.StageInstance
	for k := len(pipeline) - 1; k >= 0; k-- {
		i := pipeline[k]
		wanted := named[i.Name]
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

// shown is an output of an instance that can be heard or seen.
type shown struct {
	port, tensor, lengths string
	sound                 bool
}

// outputsOf returns the outputs of an instance that can be heard or seen, in the order of plugin.json.
func outputsOf(in catalog.Instance) (all []shown) {
	specs := dataset.Specs()
	for _, p := range in.Stage.Outputs {
		s := shown{port: p.Name, tensor: in.Outputs[p.Name], lengths: in.Outputs[p.Lengths]}
		if s.lengths == "" {
			s.lengths = in.Inputs[p.Lengths]
		}
		if p.DType != manifest.F32 || s.lengths == "" || len(p.Shape) < 2 || len(p.Shape) > 3 {
			continue
		}
		s.sound = specs[s.tensor].DType == manifest.F32 || len(p.Shape) == 2 && p.Shape[1].Symbol == manifest.SymbolWav
		all = append(all, s)
	}
	return all
}

// choose returns the outputs of the last stage that a file of that ending can hold.
func (w *way) choose(ending string) ([]shown, error) {
	all := outputsOf(w.target)
	chosen := slices.DeleteFunc(slices.Clone(all), func(s shown) bool { return s.sound != (ending == ".wav") })
	name := w.target.Stage.Name
	switch {
	case ending != ".wav" && ending != ".png":
		return nil, hint.Errorf("--out heard.wav for a sound, --out seen.png for a picture, --out heard/ for both",
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
