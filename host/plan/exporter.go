package plan

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// checkedExporter is the first exporter that compares its graphs with the module in plain PyTorch. bundle.json of those
// before has no number.
const checkedExporter = 2

// formerExporter returns a line for each fault that a graph of an exporter of before may have: nothing in the graph says
// whether it has it. The program's own bundles were compared.
func formerExporter(p *Plan) []string {
	if ortgraphs.IsBuiltin(p.Config.Graph) {
		return nil
	}
	return faultsOfBefore(p.Bundle.Manifest, p.Bundle.Model)
}

func faultsOfBefore(m *manifest.Bundle, model func(file string) *onnxpb.ModelProto) []string {
	if m.Exporter >= checkedExporter {
		return nil
	}
	has := func(kind string, match func(*onnxpb.GraphProto) bool) bool {
		return slices.ContainsFunc(m.Graphs, func(g manifest.Graph) bool {
			return g.Kind == kind && model(g.File) != nil && match(model(g.File).GetGraph())
		})
	}
	const mends = "; exporting again mends it (docs/bundle.md#bundles-of-former-exporters)"
	var lines []string
	if len(m.State) == 0 && has("eval", func(*onnxpb.GraphProto) bool { return true }) {
		lines = append(lines, "the bundle is of a former exporter, whose eval graphs of models without state compute as in training: "+
			"where the model asks for self.training, evaluations are wrong"+mends)
	}
	if has("train", attends) {
		lines = append(lines, "the bundle is of a former exporter, whose attention gives a mean where all keys of a query are masked, and PyTorch 0: "+
			"a model that masks whole rows of scores trains with other losses"+mends)
	}
	return lines
}

// attends reports whether the graph may have attention with a mask: a softmax of sums or choices.
func attends(g *onnxpb.GraphProto) bool {
	masked := map[string]bool{}
	for _, n := range g.GetNode() {
		op := n.GetOpType()
		if op == "Softmax" && slices.ContainsFunc(n.GetInput(), func(in string) bool { return masked[in] }) {
			return true
		}
		if strings.HasPrefix(op, "Add") || op == "Sum" || op == "Where" || op == "Sub" {
			for _, out := range n.GetOutput() {
				masked[out] = true
			}
		}
	}
	return false
}
