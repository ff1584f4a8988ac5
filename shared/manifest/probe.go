package manifest

import (
	"fmt"
	"slices"
)

// ProbePrefix begins the name of an output of the probe graph.
const ProbePrefix = "probe."

// DerivedSymbol is the symbol of a size of a probe that follows from others, such as half of the frames.
const DerivedSymbol = "?"

// Probe is a tensor from within the model that a run shows: the probe graph returns it as probe.<name>.
type Probe struct {
	Name  string `json:"name"`
	DType DType  `json:"dtype"`
	// Shape has symbols of the inputs, B among them, and [DerivedSymbol].
	Shape Shape `json:"shape"`
}

// ProbeGraph returns the probe graph, or false.
func (b *Bundle) ProbeGraph() (Graph, bool) {
	return b.find(func(g Graph) bool { return g.Kind == "probe" })
}

// checkProbes checks the list apart from the file.
func (b *Bundle) checkProbes() error {
	known := map[string]bool{DerivedSymbol: true}
	for _, t := range b.Inputs {
		for _, d := range t.Shape {
			known[d.Symbol] = true
		}
	}
	for i, p := range b.Probes {
		if j := slices.IndexFunc(b.Probes, func(o Probe) bool { return o.Name == p.Name }); j < i {
			return fmt.Errorf("probes[%d]: probes[%d] has the same name, %s", i, j, p.Name)
		}
		for _, d := range p.Shape {
			if d.Symbol != "" && !known[d.Symbol] {
				return fmt.Errorf("probes[%d]: no input has the dimension %s of %s%s", i, d.Symbol, p.Name, p.Shape)
			}
		}
	}
	switch _, ok := b.ProbeGraph(); {
	case ok && len(b.Probes) == 0:
		return fmt.Errorf("graphs: there is one of kind probe, and no list of probes")
	case !ok && len(b.Probes) > 0:
		return fmt.Errorf("probes: no graph is of kind probe")
	}
	return nil
}

// Matches reports whether a pattern matches the name, or its first parts: see [Parameter.Matches].
func (p Probe) Matches(pattern string) (bool, error) { return Parameter{Name: p.Name}.Matches(pattern) }
