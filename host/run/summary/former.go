package summary

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// checkedExporter is the first exporter that compares its graphs with the module in plain PyTorch. bundle.json of those
// before has no number.
const checkedExporter = 2

// formerExporter returns a line for each fault that a graph of an exporter of before may have: nothing in the graph
// says whether it has it. The program's own bundles were compared.
func formerExporter(p *plan.Plan) []string {
	if ortgraphs.IsBuiltin(p.Config.Graph) {
		return nil
	}
	return faultsOfBefore(p.Bundle.Manifest, func(file string) bool { return ortgraphs.MasksScores(p.Bundle, file) })
}

func faultsOfBefore(m *manifest.Bundle, masks func(file string) bool) []string {
	if m.Exporter >= checkedExporter {
		return nil
	}
	of := func(kind string, is func(file string) bool) bool {
		return slices.ContainsFunc(m.Graphs, func(g manifest.Graph) bool { return g.Kind == kind && is(g.File) })
	}
	const mends = "; exporting again mends it (docs/bundle.md#bundles-of-former-exporters)"
	var lines []string
	if len(m.State) == 0 && of("eval", func(string) bool { return true }) {
		lines = append(lines,
			"the bundle is of a former exporter: its evaluations are wrong if the model asks for self.training"+mends)
	}
	if of("train", masks) {
		lines = append(lines, "the bundle is of a former exporter: where all keys of a query are masked, its "+
			"attention gives a mean, and PyTorch gives 0"+
			mends)
	}
	return lines
}
