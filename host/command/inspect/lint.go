package inspect

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// LintReport is the result of Lint. As JSON it is the output of `xtts-host graph lint --json`.
type LintReport struct {
	Version int           `json:"version"`
	Bundle  string        `json:"bundle"`
	Works   bool          `json:"works"` // nothing was found
	Graphs  []LintedGraph `json:"graphs"`
}

// LintedGraph is a file of a bundle, or the graph that ONNX Runtime's optimizer or fusing produces from it.
type LintedGraph struct {
	File      string `json:"file"`
	Optimized bool   `json:"optimized"`
	// Fused is the training graph that a GPU runs, for eight rows of the largest bucket, if all its kernels can be
	// compiled. Its findings are those of the file that fusing leaves.
	Fused bool `json:"fused"`
	Nodes int  `json:"nodes"`
	// Skipped is the reason if the graph was not checked.
	Skipped string `json:"skipped,omitempty"`
	// Findings of an optimized graph are those that its file does not have.
	Findings []lint.Finding `json:"findings"`
}

// Lint finds nodes that make a bundle's graphs slow, wrong or not reproducible on a GPU. It checks the files and the
// graphs that ONNX Runtime's optimizer produces from them; for graphs of precision bf16, the files only. It fails if it
// finds something. spec and cache are as for Graph, library is --ort-lib. asJSON writes a LintReport as JSON instead of
// text.
func Lint(out io.Writer, spec, cache, library string, asJSON bool) error {
	b, err := openBundle(spec, cache)
	if err != nil {
		return exit.Refused(err)
	}
	if err := ort.Init(ort.Options{Library: library}); err != nil {
		return exit.Refused(err)
	}
	r := LintReport{Version: 1, Bundle: b.Manifest.Name}
	if r.Graphs, err = lintGraphs(b); err != nil {
		return err
	}
	found := 0
	for _, g := range r.Graphs {
		if !g.Fused {
			found += len(g.Findings)
		}
	}
	r.Works = found == 0
	if asJSON {
		err = report.JSON(out, r)
	} else {
		err = r.write(out)
	}
	if err == nil && found > 0 {
		err = exit.Refused(
			hint.Errorf("correct the model and export it again; docs/bundle.md says what graphs are made of", "%s: %s",
				spec, units.Count(found, "finding")))
	}
	return err
}

// lintGraphs checks every graph of a bundle, then what is made of it.
func lintGraphs(b *ortgraphs.Bundle) (list []LintedGraph, err error) {
	dir, err := os.MkdirTemp("", "xtts-host-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	trials := lint.Trials(b.Manifest)
	check := func(file string, trials []shapes.Sizes, known []lint.Finding) error {
		optimized := filepath.Join(dir, file)
		if err := ort.Optimize(b.Path(file), optimized); err != nil {
			return exit.Refused(err)
		}
		model, err := ortgraphs.ReadModel(optimized)
		if err != nil {
			return exit.Refused(err)
		}
		list = append(list, LintedGraph{File: file, Optimized: true, Nodes: len(model.Graph.Node), Findings: without(
			lint.Check(model, trials), known)})
		return nil
	}
	for _, g := range b.Manifest.Graphs {
		if g.Kind == "probe" { // it runs on the CPU
			continue
		}
		model := b.Model(g.File)
		found := lint.Check(model, trials)
		list = append(list, LintedGraph{File: g.File, Nodes: len(model.Graph.Node), Findings: found})
		if g.Kind == "train" {
			f, err := lintFused(b, g.File, trials[len(trials)-1])
			if err != nil {
				return nil, exit.Refused(err)
			}
			list = append(list, f)
		}
		if g.Precision == string(manifest.BF16) {
			// If a node has no kernel, ONNX Runtime creates no session, and so saves no optimized graph, at any level.
			list = append(list, LintedGraph{
				File: g.File, Optimized: true,
				Skipped:  "ONNX Runtime's CPU provider, which would optimize it, has no bf16 kernels",
				Findings: []lint.Finding{},
			})
			continue
		}
		if err := check(g.File, trials, found); err != nil {
			return nil, err
		}
	}
	trained := len(list)
	for _, g := range b.Manifest.Inference {
		model, trials := b.Model(g.File), lint.InferenceTrials(b.Manifest, g)
		found := lint.Check(model, trials)
		list = append(list, LintedGraph{File: g.File, Nodes: len(model.Graph.Node), Findings: slices.Clone(found)})
		if err := check(g.File, trials, found); err != nil {
			return nil, err
		}
	}
	for i := range list[trained:] {
		uncaptured(&list[trained+i])
	}
	return list, nil
}

// without returns the findings that are not among those known of the same nodes.
func without(findings, known []lint.Finding) []lint.Finding {
	return slices.DeleteFunc(findings, func(f lint.Finding) bool {
		return slices.ContainsFunc(known,
			func(k lint.Finding) bool { return k.Rule == f.Rule && k.Place == f.Place && k.Op == f.Op })
	})
}

// uncaptured removes the findings about CUDA graphs: no one captures an inference graph, whose sizes change from run to
// run.
func uncaptured(g *LintedGraph) {
	g.Findings = slices.DeleteFunc(g.Findings, func(f lint.Finding) bool { return f.Rule == lint.CUDAGraph })
}

// maxGraph bounds a graph, in bytes: it has no weights.
const maxGraph = 64 << 20

// lintFused checks the graph that fusing makes of a file. A graph that cannot be fused is skipped.
func lintFused(b *ortgraphs.Bundle, file string, sizes shapes.Sizes) (LintedGraph, error) {
	g := LintedGraph{File: file, Fused: true, Findings: []lint.Finding{}}
	data, err := files.Read(b.Path(file), maxGraph)
	if err != nil {
		return g, err
	}
	p, err := fused.NewPlan(data, sizes, fused.Form{})
	if err != nil {
		g.Skipped = err.Error()
		return g, nil
	}
	model, err := p.Draft()
	if err != nil {
		g.Skipped = err.Error()
		return g, nil
	}
	g.Nodes, g.Findings = len(model.Graph.Node), lint.Check(model, []shapes.Sizes{{}}) // all its sizes are fixed
	return g, nil
}

// write prints the report as text.
func (r LintReport) write(out io.Writer) error {
	var text strings.Builder
	for _, g := range r.Graphs {
		text.WriteString(g.File)
		switch {
		case g.Optimized:
			text.WriteString(" as ONNX Runtime optimizes it")
		case g.Fused:
			text.WriteString(" as fused on a GPU")
		}
		if g.Skipped != "" {
			visible.Fprintf(&text, ": skipped: %s\n", g.Skipped)
			continue
		}
		finding := "finding"
		if g.Optimized {
			finding = "other finding"
		}
		visible.Fprintf(&text, ": %s, %s\n", units.Count(g.Nodes, "node"), units.Count(len(g.Findings), finding))
		for _, f := range g.Findings {
			if g.Fused { // the reason is above
				visible.Fprintf(&text, "  %-18s  %s (%s)\n", f.Rule, f.Place, f.Op)
				continue
			}
			visible.Fprintf(&text, "  %-18s  %s (%s): %s\n  %-18s  fix: %s\n", f.Rule, f.Place, f.Op, f.Reason, "",
				f.Fix)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
