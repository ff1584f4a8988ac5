package catalog

import (
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// notChosen is the error for a stage that every row needs.
func notChosen(i *Instance) error {
	what, advice := "it has p", "leave p out"
	if i.Group != nil {
		what, advice = "it is a member of "+i.Group.Name, "make it an entry of its own"
	}
	return hint.Errorf(advice, "%s, but stage %q is of kind %s: without it, a row has no %s", what, i.Stage.Name,
		i.Stage.Kind, list(outputsOf(i)))
}

func outputsOf(i *Instance) (names []string) {
	for _, port := range i.Stage.Outputs {
		names = append(names, i.Outputs[port.Name])
	}
	return names
}

// growth is the largest factor by which an entry of the pipeline lengthens a row.
func (r *resolver) growth(entry *manifest.StageInstance) float64 {
	var each []float64
	for _, i := range r.out.Instances {
		if i.Name == entry.Name && i.Group == nil || i.Group == entry {
			each = append(each, i.Stage.Growth(i.Config))
		}
	}
	slices.Sort(each)
	slices.Reverse(each)
	n := len(each)
	switch {
	case entry.OneOf != nil:
		n = 1
	case entry.Count != nil:
		n = entry.Count.High
	}
	product := 1.0
	for _, g := range each[:n] {
		product *= g
	}
	return product
}

// Summaries describes the entries of the pipeline, with a group as one of them: "clip 30 %", "one of (a, b) 80 %".
func (r *Resolved) Summaries() (all []string) {
	for k, i := range r.Instances {
		switch {
		case i.Group == nil:
			s := manifest.StageInstance{Name: i.Name, P: i.P}
			all = append(all, s.Summary())
		case k == 0 || r.Instances[k-1].Group != i.Group:
			all = append(all, i.Group.Summary())
		}
	}
	return all
}
