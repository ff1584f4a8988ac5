package selection

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Gradient and Parameter precede the name of a parameter in a pattern, and in the name of what is shown.
const (
	Gradient  = "gradient/"
	Parameter = "parameter/"
)

// mostShown bounds what is shown: training waits for it at each evaluation, and each has a line.
const mostShown = 1000

// Shown is what a run shows at its evaluations.
type Shown struct {
	Probes []manifest.Probe
	// Gradients and Parameters are names of parameters.
	Gradients, Parameters []string
}

// Count returns the number of tensors.
func (s *Shown) Count() int { return len(s.Probes) + len(s.Gradients) + len(s.Parameters) }

// Probes finds what the patterns of --probe name: probes of the bundle, gradient/PATTERN the gradients of trained
// parameters, and parameter/PATTERN parameters. Each must name something.
func Probes(patterns []string, b *manifest.Bundle, trained map[string]bool) (s Shown, err error) {
	for _, pattern := range patterns {
		var matched bool
		if name, ok := strings.CutPrefix(pattern, Gradient); ok {
			matched, err = takeParameters(&s.Gradients, name, b.Parameters, trained)
		} else if name, ok := strings.CutPrefix(pattern, Parameter); ok {
			matched, err = takeParameters(&s.Parameters, name, b.Parameters, nil)
		} else {
			matched, err = takeProbes(&s, pattern, b.Probes)
		}
		if err != nil {
			return s, hint.Errorf("write a name with * for any text, ? for one character, [abc] for one of these",
				"--probe %s: not a pattern", pattern)
		}
		if !matched {
			return s, hint.Errorf(known(pattern, b), "--probe %s: no tensor has such a name", pattern)
		}
	}
	if n := s.Count(); n > mostShown {
		return s, hint.Errorf("training waits for them at each evaluation: name fewer",
			"--probe %s: %d tensors, at most %d are shown", strings.Join(patterns, ","), n, mostShown)
	}
	return s, nil
}

// takeParameters adds the names of the parameters that a pattern matches. matched reports whether there is one.
func takeParameters(
	names *[]string, pattern string, of []manifest.Parameter, only map[string]bool,
) (matched bool, err error) {
	for _, p := range of {
		ok, err := p.Matches(pattern)
		if err != nil {
			return false, err
		}
		if !ok || only != nil && !only[p.Name] {
			continue
		}
		if matched = true; !slices.Contains(*names, p.Name) {
			*names = append(*names, p.Name)
		}
	}
	return matched, nil
}

func takeProbes(s *Shown, pattern string, of []manifest.Probe) (matched bool, err error) {
	for _, p := range of {
		ok, err := p.Matches(pattern)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if matched = true; !slices.ContainsFunc(s.Probes, func(o manifest.Probe) bool { return o.Name == p.Name }) {
			s.Probes = append(s.Probes, p)
		}
	}
	return matched, nil
}

// listed bounds the names in a message.
const listed = 10

// known says what there is.
func known(pattern string, b *manifest.Bundle) string {
	switch {
	case strings.HasPrefix(pattern, Gradient):
		return "gradients have the names of trained parameters: " + hint.Command("graph inspect") +
			" lists them"
	case strings.HasPrefix(pattern, Parameter):
		return hint.Command("graph inspect") + " lists the parameters"
	case len(b.Probes) == 0:
		return "the bundle has no probes: docs/export.md shows how to add them; --probe 'gradient/*' shows the " +
			"gradients"
	}
	var names []string
	for _, p := range b.Probes[:min(listed, len(b.Probes))] {
		names = append(names, p.Name)
	}
	text := "the bundle has the probes " + strings.Join(names, ", ")
	if more := len(b.Probes) - len(names); more > 0 {
		text += " and " + units.Thousands(int64(more)) + " more"
	}
	return text
}
