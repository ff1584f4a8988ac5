package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Graph describes a bundle: a folder, or builtin:NAME, which is unpacked into the cache folder. An empty cache folder
// means the user's. rows adds what fusion would save in a batch of so many rows, unless it is 0, and what a step is
// expected to take on a card; an empty name means that of the machine. asJSON writes the summary as JSON instead of
// text.
func Graph(out io.Writer, spec, cache string, rows int, card string, asJSON bool) error {
	of, err := cardOf(card)
	if err != nil {
		return exit.Refused(err)
	}
	b, err := openBundle(spec, cache)
	if err != nil {
		return exit.Refused(err)
	}
	s := summary{Summary: b.Inspect()}
	if rows > 0 {
		if s.Fused, err = ledgers(b, rows, of); err != nil {
			return exit.Refused(err)
		}
	}
	if asJSON {
		return report.JSON(out, s)
	}
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	title := b.Manifest.Name
	if b.Manifest.Description != "" {
		title += ": " + b.Manifest.Description
	}
	t.line("bundle", "%s", title)
	t.line("folder", "%s", b.Dir)
	t.line("license", "%s", b.Manifest.License)
	t.tensors(b.Manifest, s.Summary)
	t.memory(b.Manifest, s.Summary)
	t.training(b.Manifest, s.Summary)
	t.inference(s.Summary)
	t.fused(b.Manifest, s.Fused)
	return t.w.Flush()
}

// summary is the output of `graph inspect --json`.
type summary struct {
	ortgraphs.Summary
	Fused []Fused `json:"fused,omitempty"`
}

// table is lines with labels.
type table struct{ w *tabwriter.Writer }

func (t *table) line(label, format string, args ...any) {
	fmt.Fprintf(t.w, "%s\t%s\n", label, visible.Text(fmt.Sprintf(format, args...)))
}

// tensors describes inputs, outputs, trained parameters and buckets.
func (t *table) tensors(m *manifest.Bundle, s ortgraphs.Summary) {
	for i, in := range m.Inputs {
		lengths := ""
		if in.Lengths != "" {
			lengths = ", counted by " + in.Lengths
		}
		t.line(first(i, "inputs"), "%s from the %s%s", in, source(in), lengths)
	}
	for i, s := range m.Scalars {
		text := "the sum of " + s.Lengths
		if s.PerRow > 0 {
			text += fmt.Sprintf(", and %d for each row,", s.PerRow)
		}
		text += " over the batches of a step"
		if s.Origin == manifest.OriginSchedule {
			text = fmt.Sprintf("a schedule from %g to %g", s.Points[0][1], s.Last())
		}
		t.line(first(i, "scalars"), "%s f32[]: %s", s.Name, text)
	}
	for i, out := range m.Outputs {
		t.line(first(i, "outputs"), "%s", out)
	}
	for i, p := range m.Probes {
		t.line(first(i, "probes"), "%s %s%s", p.Name, p.DType, p.Shape)
	}
	t.line("parameters", "%s values in %s, %s MiB: %s with weight decay, %s without, %s frozen",
		units.Thousands(s.Parameters.Elements), units.Count(s.Parameters.Tensors, "tensor"),
		units.Mebibytes(float64(s.Parameters.Elements*manifest.F32.Size())), units.Thousands(s.Parameters.Decayed),
		units.Thousands(s.Parameters.NotDecayed), units.Thousands(s.Parameters.Frozen))
	if len(m.State) > 0 {
		values := 0
		for _, state := range m.State {
			values += state.Elements()
		}
		t.line("state", "%s values in %s, which training changes: %s", units.Thousands(values),
			units.Count(len(m.State), "tensor"), stateNames(m.State))
	}
	for i, p := range precisions(s) {
		t.line(first(i, "precisions"), "%s", p)
	}
	for i, bucket := range m.Buckets {
		t.line(first(i, "buckets"), "%s", Symbols(bucket, m.Inputs))
	}
	if m.Dynamic != nil {
		t.line("dynamic", "%s: buckets can be computed from the data, for clips of up to %.2f s",
			Symbols(m.Dynamic, m.Inputs), m.LongestClip())
	}
}

// stateNames lists the first names.
func stateNames(list []manifest.State) string {
	const shown = 6
	var names []string
	for _, s := range list[:min(shown, len(list))] {
		names = append(names, s.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// source says where the values of an input come from.
func source(in manifest.TensorSpec) string {
	switch {
	case in.FromList() && in.Column == "":
		return "list"
	case in.Origin == manifest.OriginFile:
		return fmt.Sprintf("arrays that the list names as %s", in.Column)
	case in.Vocabulary != "":
		return fmt.Sprintf("list, its symbols %s by %s", in.Column, in.Vocabulary)
	case in.Origin == manifest.OriginColumn:
		return fmt.Sprintf("list, its %s", in.Column)
	}
	return in.Origin
}

// memory describes the cost of a step, and the memory use.
func (t *table) memory(m *manifest.Bundle, s ortgraphs.Summary) {
	for _, c := range s.Steps {
		if c.BatchSize == shownBatch {
			t.line(first(c.Bucket, "step"), "%s", stepText(c))
		}
	}
	memory := s.Parameters.Memory
	t.line("memory",
		"%s MiB: weights %s, gradients %s, state of %s %s (computed; --accumulate takes the gradients' size once more)",
		units.Mebibytes(float64(memory.Total())), units.Mebibytes(float64(memory.Weights)),
		units.Mebibytes(float64(memory.Gradients)), optimizers(m), units.Mebibytes(float64(memory.Moments)))
	var slots, between, rows []string
	for _, c := range s.Steps {
		if c.Bucket == len(m.Buckets)-1 {
			rows = append(rows, fmt.Sprint(c.BatchSize))
			slots = append(slots, units.Mebibytes(c.InputBytes))
			between = append(between, units.Mebibytes(c.ActivationBytes))
		}
	}
	t.line("", "for %s rows of the largest bucket: %s MiB in each of --slots, %s MiB between the nodes (computed)",
		strings.Join(rows, ", "), strings.Join(slots, ", "), strings.Join(between, ", "))
}

// training describes the training settings of the bundle and the operators of its graphs.
func (t *table) training(m *manifest.Bundle, s ortgraphs.Summary) {
	for i, p := range m.Pipeline {
		if p.IsGroup() {
			t.line(first(i, "pipeline"), "%s: %s", p.Name, p.Summary())
		} else {
			t.line(first(i, "pipeline"), "%s: %s", p.Summary(), p.Stage)
		}
	}
	for i, p := range m.InTurn() {
		o, name := p.Optimizer, ""
		if p.Name != "" {
			name = fmt.Sprintf("%d. %s: ", i+1, p.Name)
		}
		clip, warmup := "not clipped", ""
		if o.GradClip > 0 {
			clip = fmt.Sprintf("clipped at %g", o.GradClip)
		}
		if n := p.Schedule.WarmupSteps; n > 0 {
			warmup = " after " + units.Count(n, "step") + " of warm-up"
		}
		t.line(first(i, "optimizer"), "%s%s, learning rate %g, weight decay %g, %s, %s%s", name, o.Name, o.LR,
			o.WeightDecay, clip, p.Schedule.Name, warmup)
	}
	t.line("accumulation", "%s", m.Accumulation)
	for i, g := range s.Graphs {
		var ops []string
		for _, op := range g.Ops[:min(8, len(g.Ops))] {
			ops = append(ops, fmt.Sprintf("%s %d", op.Op, op.Nodes))
		}
		t.line(first(i, "graphs"), "%s (%s%s, %s): %d nodes: %s ...", g.File, g.Kind, report.OfPlayer(g.Player),
			g.Precision, g.Nodes, strings.Join(ops, ", "))
	}
}

// inference describes the inference graphs.
func (t *table) inference(s ortgraphs.Summary) {
	names := func(list []manifest.TensorSpec) string {
		var parts []string
		for _, tensor := range list[:min(shownTensors, len(list))] {
			parts = append(parts, tensor.String())
		}
		if more := len(list) - len(parts); more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
		return strings.Join(parts, ", ")
	}
	for i, g := range s.Inference {
		takes := units.Count(g.Parameters, "parameter")
		if g.Weights != "" {
			takes += fmt.Sprintf(" and %s MiB of %s", units.Mebibytes(float64(g.WeightBytes)), g.Weights)
		}
		t.line(first(i, "inference"), "%s (%s, %s): %d nodes, with %s: %s to %s", g.Name, g.Kind, g.File, g.Nodes,
			takes, names(g.Inputs), names(g.Outputs))
	}
}

// shownTensors bounds the tensors of a line.
const shownTensors = 6

// precisions describes which parameters each training graph has in which precision.
func precisions(s ortgraphs.Summary) []string {
	var list []string
	for _, g := range s.Graphs {
		switch {
		case g.Kind != "train":
		case g.Precision == string(manifest.BF16):
			list = append(list, fmt.Sprintf("bf16 (%s): %s of %s values, with gradients, in bf16, the other %d in f32",
				g.File, units.Count(s.Parameters.BF16Tensors, "parameter"), units.Thousands(s.Parameters.BF16),
				s.Parameters.Tensors-s.Parameters.BF16Tensors))
		default:
			list = append(list, fmt.Sprintf("%s (%s): all parameters in f32", g.Precision, g.File))
		}
	}
	return list
}

// openBundle opens the bundle of a command; an empty cache folder means the user's.
func openBundle(spec, cache string) (*ortgraphs.Bundle, error) {
	cache, err := config.CacheFolder(cache)
	if err != nil {
		return nil, err
	}
	return ortgraphs.Open(spec, cache)
}

// shownBatch is the batch size of the lines about steps; --json has others.
const shownBatch = 8

func stepText(c ortgraphs.StepCost) string {
	text := fmt.Sprintf("bucket %d, %s: ", c.Bucket, units.Count(c.BatchSize, "row"))
	if c.Problem != "" && c.FLOPs == 0 {
		return text + c.Problem
	}
	text += fmt.Sprintf("%.2f GFLOP, %.2f GB read and written at most", c.FLOPs/1e9, c.Bytes/1e9)
	if c.Problem != "" {
		text += ", or more: " + c.Problem
	}
	return text
}

func first(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

// Symbols writes a bucket with its symbols in the order in which the inputs use them.
func Symbols(b manifest.Bucket, inputs []manifest.TensorSpec) string {
	var parts []string
	seen := map[string]bool{manifest.BatchSymbol: true}
	add := func(s string) {
		if n, ok := b[s]; ok && !seen[s] {
			seen[s] = true
			parts = append(parts, fmt.Sprintf("%s %d", s, n))
		}
	}
	for _, t := range inputs {
		for _, d := range t.Shape {
			add(d.Symbol)
		}
	}
	for _, s := range []string{"T_wav", "T_ref"} {
		add(s)
	}
	return strings.Join(parts, ", ")
}

// optimizers names those of the players.
func optimizers(m *manifest.Bundle) string {
	var names []string
	for _, p := range m.InTurn() {
		names = append(names, p.Optimizer.Name)
	}
	return strings.Join(slices.Compact(names), " and ")
}
