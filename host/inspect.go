package host

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// PluginList is the content of a folder of plugins. As JSON it is the output of `xtts-host plugins list --json`.
type PluginList struct {
	Version int            `json:"version"`
	Plugins []ListedPlugin `json:"plugins"`
}

// ListedPlugin is a folder below it. Version and Stages are empty for one whose manifest cannot be read.
type ListedPlugin struct {
	Name    string           `json:"name"`
	Folder  string           `json:"folder"`
	Version string           `json:"version,omitempty"`
	State   string           `json:"state"`
	Reason  string           `json:"reason,omitempty"`
	Hint    string           `json:"hint,omitempty"`
	Stages  []manifest.Stage `json:"stages"`
}

func listOf(entries []catalog.Entry) PluginList {
	list := PluginList{Version: 1, Plugins: []ListedPlugin{}}
	for _, e := range entries {
		p := ListedPlugin{Name: e.Name(), Folder: e.Dir, State: fmt.Sprint(e.State), Reason: e.Reason, Hint: e.Hint, Stages: []manifest.Stage{}}
		if e.Manifest != nil {
			p.Version, p.Stages = e.Manifest.Version, e.Manifest.Stages
		}
		list.Plugins = append(list.Plugins, p)
	}
	return list
}

// ListPlugins says what is in a folder of plugins. Nothing is started. asJSON writes a PluginList for programs instead of the text
// for people.
func ListPlugins(out io.Writer, dir string, asJSON bool) error {
	entries, err := catalog.Scan(dir)
	if err != nil {
		return exit.Refused(err)
	}
	if asJSON {
		return report.JSON(out, listOf(entries))
	}
	if len(entries) == 0 {
		fmt.Fprintf(out, "%s: no folder in it\n", dir)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		version := ""
		if e.Manifest != nil {
			version = e.Manifest.Version
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name(), version, e.State, e.Reason)
		if e.Hint != "" {
			fmt.Fprintf(w, "\t\t\thint: %s\n", e.Hint)
		}
		if e.Manifest == nil {
			continue
		}
		for _, s := range e.Manifest.Stages {
			fmt.Fprintf(w, "  %s\t%s\t\t%s -> %s\n", s.Name, s.Kind, ports(s.Inputs), ports(s.Outputs))
		}
	}
	return w.Flush()
}

func ports(specs []manifest.TensorSpec) string {
	parts := make([]string, len(specs))
	for i, s := range specs {
		parts[i] = s.String()
	}
	return strings.Join(parts, ", ")
}

// InspectGraph says what a bundle is: a folder, or builtin:NAME, which is unpacked into the cache folder. An empty one is the
// user's. asJSON writes an ortgraphs.Summary for programs instead of the text for people.
func InspectGraph(out io.Writer, spec, cache string, asJSON bool) error {
	b, err := openBundle(spec, cache)
	if err != nil {
		return exit.Refused(err)
	}
	m, s := b.Manifest, b.Inspect()
	if asJSON {
		return report.JSON(out, s)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(label string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", label, fmt.Sprintf(format, args...))
	}
	line("bundle", "%s: %s", m.Name, m.Description)
	line("folder", "%s", b.Dir)
	line("license", "%s", m.License)
	for i, t := range m.Inputs {
		lengths := ""
		if t.Lengths != "" {
			lengths = ", counted by " + t.Lengths
		}
		line(first(i, "inputs"), "%s from the %s%s", t, t.Origin, lengths)
	}
	for i, t := range m.Outputs {
		line(first(i, "outputs"), "%s", t)
	}
	line("parameters", "%s values in %d tensors, %s MiB: %s with weight decay, %s without, %s frozen",
		report.Thousands(s.Parameters.Elements), s.Parameters.Tensors, report.Mebibytes(float64(s.Parameters.Elements*manifest.F32.Size())),
		report.Thousands(s.Parameters.Decayed), report.Thousands(s.Parameters.NotDecayed), report.Thousands(s.Parameters.Frozen))
	for i, p := range precisions(s) {
		line(first(i, "precisions"), "%s", p)
	}
	for i, bucket := range m.Buckets {
		line(first(i, "buckets"), "%s", symbols(bucket, m.Inputs))
	}
	for _, c := range s.Steps {
		if c.BatchSize == shownBatch {
			line(first(c.Bucket, "step"), "%s", stepText(c))
		}
	}
	memory := s.Parameters.Memory
	line("memory", "%s MiB: weights %s, gradients %s, state of %s %s (computed; --accumulate takes the gradients' size once more)",
		report.Mebibytes(float64(memory.Total())), report.Mebibytes(float64(memory.Weights)), report.Mebibytes(float64(memory.Gradients)),
		m.Optimizer.Name, report.Mebibytes(float64(memory.Moments)))
	var slots, between, rows []string
	for _, c := range s.Steps {
		if c.Bucket == len(m.Buckets)-1 {
			rows = append(rows, fmt.Sprint(c.BatchSize))
			slots = append(slots, report.Mebibytes(c.InputBytes))
			between = append(between, report.Mebibytes(c.ActivationBytes))
		}
	}
	line("", "for %s rows of the largest bucket: %s MiB in each of --slots, %s MiB between the nodes (computed)",
		strings.Join(rows, ", "), strings.Join(slots, ", "), strings.Join(between, ", "))
	for i, p := range m.Pipeline {
		line(first(i, "pipeline"), "%s: %s", p.Name, p.Stage)
	}
	line("optimizer", "%s, learning rate %g, weight decay %g, clipped at %g, %s after %d steps",
		m.Optimizer.Name, m.Optimizer.LR, m.Optimizer.WeightDecay, m.Optimizer.GradClip, m.Schedule.Name, m.Schedule.WarmupSteps)
	line("accumulation", "%s", m.Accumulation)
	for i, g := range s.Graphs {
		var ops []string
		for _, op := range g.Ops[:min(8, len(g.Ops))] {
			ops = append(ops, fmt.Sprintf("%s %d", op.Op, op.Nodes))
		}
		line(first(i, "graphs"), "%s (%s, %s): %d nodes: %s ...", g.File, g.Kind, g.Precision, g.Nodes, strings.Join(ops, ", "))
	}
	return w.Flush()
}

// precisions says what each training graph takes in which type.
func precisions(s ortgraphs.Summary) []string {
	var list []string
	for _, g := range s.Graphs {
		switch {
		case g.Kind != "train":
		case g.Precision == string(manifest.BF16):
			list = append(list, fmt.Sprintf("bf16 (%s): %s of %s values, with gradients, in bf16, the other %d in f32",
				g.File, report.Count(s.Parameters.BF16Tensors, "parameter"), report.Thousands(s.Parameters.BF16), s.Parameters.Tensors-s.Parameters.BF16Tensors))
		default:
			list = append(list, fmt.Sprintf("%s (%s): all parameters in f32", g.Precision, g.File))
		}
	}
	return list
}

// openBundle opens what a command names, with an empty cache folder for the user's.
func openBundle(spec, cache string) (*ortgraphs.Bundle, error) {
	cache, err := cacheDir(cache)
	if err != nil {
		return nil, err
	}
	return ortgraphs.Open(spec, cache)
}

// shownBatch is the batch size of the lines about steps; --json has others.
const shownBatch = 8

func stepText(c ortgraphs.StepCost) string {
	text := fmt.Sprintf("bucket %d, %d rows: ", c.Bucket, c.BatchSize)
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

// symbols writes a bucket with its symbols in the order in which the inputs use them.
func symbols(b manifest.Bucket, inputs []manifest.TensorSpec) string {
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
