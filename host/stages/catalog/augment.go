package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Augment returns a copy of the pipeline with an instance of each named augmentation ("stage" or "plugin/stage"). It
// matches the ports of an augmentation by name with those of the preprocess stages. An augmentation of what the first
// matching instance reads (a waveform) is inserted before that instance; an augmentation of what it writes (mel
// spectrograms) is inserted after it. Without a match, the augmentation is appended, and its ports are bound to tensors
// of the same names. A name may end with the probability that a row gets it: waveaug:0.3.
func Augment(pipeline []manifest.StageInstance, names []string, entries []Entry) ([]manifest.StageInstance, error) {
	out := slices.Clone(pipeline)
	r := &resolver{entries: entries}
	inserted := map[string]int{} // augmentations that were inserted after an instance already
	for _, asked := range names {
		name, p, err := withProbability(asked)
		if err != nil {
			return nil, err
		}
		_, stage, err := r.find(name)
		if err != nil {
			return nil, hint.Errorf(cmp.Or(hint.Of(err),
				"name one of these stages, or add a plugin that has it to the folder of --plugins"),
				"--augment %s: %w", name, err)
		}
		if stage.Kind != manifest.Augment {
			return nil, fmt.Errorf("--augment %s: the stage is of kind %s: only the pipeline of a bundle, or of a "+
				"file that --config names, has such a stage",
				name, stage.Kind)
		}
		i := manifest.StageInstance{Name: instanceName(stage.Name, out), Stage: name, P: p}
		at := len(out)
		i.Inputs, i.Outputs = bindByName(stage, nil)
		for k, had := range out {
			if had.IsGroup() { // of augmentations
				continue
			}
			if _, host, err := r.find(had.Stage); err != nil || host.Kind != manifest.Preprocess {
				continue
			}
			if covers(had.Inputs, stage) {
				at = k
				i.Inputs, i.Outputs = bindByName(stage, had.Inputs)
				break
			}
			if covers(had.Outputs, stage) {
				inserted[had.Name]++
				at = k + inserted[had.Name]
				i.Inputs, i.Outputs = bindByName(stage, had.Outputs)
				break
			}
		}
		out = slices.Insert(out, at, i)
	}
	return out, nil
}

// withProbability takes NAME:P apart. No name of a stage has a colon.
func withProbability(asked string) (name string, p *manifest.Probability, err error) {
	name, text, found := strings.Cut(asked, ":")
	if !found {
		return name, nil, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && v > 1 && v <= 100:
		return "", nil, hint.Errorf(fmt.Sprintf("for %g percent, write %s:%g", v, name, v/100),
			"--augment %s: %s is no probability of 0 to 1", asked, text)
	case err != nil || !(v >= 0 && v <= 1):
		return "", nil, hint.Errorf(fmt.Sprintf("write %s:0.3 for 30 percent of the rows", name),
			"--augment %s: %q is no probability of 0 to 1", asked, text)
	}
	return name, &manifest.Probability{Points: [][2]float64{{0, v}}}, nil
}

// covers reports whether the ports include everything that the augmentation reads.
func covers(ports map[string]string, stage manifest.Stage) bool {
	for _, p := range stage.Inputs {
		if _, ok := ports[p.Name]; !ok {
			return false
		}
	}
	return true
}

// bindByName binds the ports of the augmentation to the tensors of the given ports of the same names, or else to
// tensors of the same names.
func bindByName(stage manifest.Stage, ports map[string]string) (inputs, outputs map[string]string) {
	tensor := func(port string) string {
		if t, ok := ports[port]; ok {
			return t
		}
		return port
	}
	inputs, outputs = map[string]string{}, map[string]string{}
	for _, p := range stage.Inputs {
		inputs[p.Name] = tensor(p.Name)
	}
	for _, p := range stage.Outputs {
		outputs[p.Name] = tensor(p.Name)
	}
	return inputs, outputs
}

// instanceName returns the name of the stage, with a number if the pipeline already has that name. Random draws depend
// on it, so it must depend only on the pipeline.
func instanceName(stage string, pipeline []manifest.StageInstance) string {
	used := map[string]bool{}
	for i := range pipeline {
		used[pipeline[i].Name] = true
		for _, m := range pipeline[i].Members() {
			used[m.Name] = true
		}
	}
	name := stage
	for n := 2; used[name]; n++ {
		name = fmt.Sprintf("%s-%d", stage, n)
	}
	return name
}
