package inspect

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// defaultCard is that of predictions on a machine without a GPU whose figures are known.
const defaultCard = "H200"

// cardOf returns the card of a name, or without one that of the machine's first GPU.
func cardOf(name string) (cost.Card, error) {
	if name == "" {
		name = defaultCard
		if list, err := gpu.Detect(); err == nil && len(list) > 0 {
			if c, ok := cost.CardOf(list[0].Name); ok {
				return c, nil
			}
		}
	}
	c, ok := cost.CardOf(name)
	if !ok {
		return c, hint.Errorf("choose the nearest of "+strings.Join(cost.Names(), ", "),
			"--card %s: there are no figures of such a GPU", name)
	}
	return c, nil
}

// costsOf returns what predicts a step of a training graph in TF32.
func costsOf(b *ortgraphs.Bundle, g manifest.Graph, card cost.Card) (settings cost.Settings) {
	arenas := ortgraphs.NewArenas(b.Manifest, b.Policy(manifest.DType(g.Precision)))
	for i, p := range b.Manifest.InTurn() {
		if p.Name == g.Player {
			settings = train.CostsOf(b.Manifest, p.Name, arenas[i], p.Optimizer)
		}
	}
	settings.Card, settings.TF32 = card, true
	return settings
}

// launchedSingly says why the fused graph cannot run as a CUDA graph; it is empty if it can.
func launchedSingly(p *fused.Plan) (string, error) {
	model, err := p.Draft()
	if err != nil {
		return "", err
	}
	if f := lint.Uncapturable(model, []shapes.Sizes{{}}); f != nil {
		return f.String(), nil
	}
	return "", nil
}

// shownKinds is the number of kinds that are printed of what is slow for one reason; --json has all.
const shownKinds = 4

// predictedWidth is the width of what the prediction prints behind the labels.
const predictedWidth = 64

// predicted prints what a step is expected to take.
func (t *table) predicted(precision string, p *cost.Prediction) {
	if precision == string(manifest.F32) {
		precision = "tf32"
	}
	graph := "in a CUDA graph"
	if !p.CUDAGraph {
		graph = "one by one"
	}
	t.wrapped("", "predicted: %s ms a step on one %s in %s; floor %s ms; %s launches, %s", ms(p.MS), p.Card, precision,
		ms(p.FloorMS), units.Thousands(p.Launches), graph)
	var parts []string
	for _, part := range p.Parts {
		parts = append(parts, fmt.Sprintf("%s %s", part.Name, ms(part.MS)))
	}
	t.wrapped("  ", "%s", strings.Join(parts, ", "))
	if len(p.Slow) == 0 {
		t.wrapped("  ", "nothing that takes 1 %% of the step takes more than twice its floor")
		return
	}
	t.wrapped("  ", "more than twice their floor:")
	for _, s := range p.Slow {
		t.wrapped("  ", "%s ms, floor %s: %s; %s", ms(s.MS), ms(s.FloorMS), s.Why, s.Mend)
		for _, k := range s.Kinds[:min(shownKinds, len(s.Kinds))] {
			text := fmt.Sprintf("%s ms, floor %s", ms(k.MS), ms(k.FloorMS))
			if n := len(k.Tensors); n > 1 {
				text += fmt.Sprintf(", in %d", n)
			}
			t.wrapped("    ", "%s: %s: %s", text, k.What, abridged(k.Tensors))
		}
		if more := len(s.Kinds) - shownKinds; more > 0 {
			t.wrapped("    ", "%s that --json lists", units.Count(more, "other kind"))
		}
	}
}

// ms writes milliseconds.
func ms(v float64) string {
	if v >= 100 {
		return units.Thousands(int(v + 0.5))
	}
	return fmt.Sprintf("%.2f", v)
}

// wrapped prints a line, divided so that each part is at most predictedWidth wide, behind the indent; words that are
// wider stay whole.
func (t *table) wrapped(indent, format string, args ...any) {
	text, line := strings.Fields(fmt.Sprintf(format, args...)), indent
	for _, word := range text {
		if strings.TrimSpace(line) != "" && len(line)+1+len(word) > predictedWidth {
			t.line("", "%s", line)
			line = indent + "  "
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		line += word
	}
	t.line("", "%s", line)
}
