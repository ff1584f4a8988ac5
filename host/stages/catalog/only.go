package catalog

import (
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Only returns the pipeline with nothing but the named instances, those before them that make what they read or count,
// and the tensors of these. It is for a command that trains nothing: the graph's other inputs are missing.
func (r *Resolved) Only(names []string) *Resolved {
	used := map[string]bool{} // tensors
	out := &Resolved{MaxGrowth: r.MaxGrowth}
	for _, in := range slices.Backward(r.Instances) {
		needed := slices.Contains(names, in.Name)
		for _, tensor := range in.Outputs {
			needed = needed || used[tensor]
		}
		if !needed {
			continue
		}
		for _, bound := range []map[string]string{in.Inputs, in.Outputs} {
			for _, tensor := range bound {
				used[tensor] = true
			}
		}
		for counts, graphs := range in.Recounts {
			used[counts], used[graphs] = true, true
		}
		out.Instances = append(out.Instances, in)
	}
	slices.Reverse(out.Instances)
	numbers, calls := map[int]int{}, map[int]int{} // by number of a plugin in r: that in out, and its instances
	for i := range out.Instances {
		in := &out.Instances[i]
		was := in.Plugin
		if _, known := numbers[was]; !known {
			numbers[was] = len(out.Plugins)
			out.Plugins = append(out.Plugins, r.Plugins[was])
		}
		in.Plugin, in.Index = numbers[was], calls[was]
		calls[was]++
	}
	of := func(specs []manifest.TensorSpec) []manifest.TensorSpec {
		return slices.DeleteFunc(slices.Clone(specs), func(s manifest.TensorSpec) bool { return !used[s.Name] })
	}
	out.Inputs, out.Dataset, out.Intermediates = of(r.Inputs), of(r.Dataset), of(r.Intermediates)
	return out
}

// Names lists the instances.
func (r *Resolved) Names() (names []string) {
	for _, in := range r.Instances {
		names = append(names, in.Name)
	}
	return names
}
