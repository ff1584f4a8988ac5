package host

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// LintGraph looks for what makes a bundle's graphs slow, wrong or not reproducible on a GPU, in the files and in what ONNX
// Runtime's optimiser makes of them; of graphs of precision bf16 in the files only. It fails when there is something. spec and cache
// are as for InspectGraph, library as --ort-lib.
func LintGraph(out io.Writer, spec, cache, library string) error {
	b, err := openBundle(spec, cache)
	if err != nil {
		return exit.Refused(err)
	}
	if err := ort.Init(ort.Options{Library: library}); err != nil {
		return exit.Refused(err)
	}
	dir, err := os.MkdirTemp("", "xtts-host-lint-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	total := 0
	look := func(what, path string) error {
		model, err := ortgraphs.ReadModel(path)
		if err != nil {
			return err
		}
		findings := lint.Check(model, lint.Trials(b.Manifest))
		fmt.Fprintf(out, "%s: %s, %s\n", what, report.Count(len(model.Graph.Node), "node"), report.Count(len(findings), "finding"))
		for _, f := range findings {
			fmt.Fprintf(out, "  %-18s  %s (%s): %s\n  %-18s  fix: %s\n", f.Rule, f.Place, f.Op, f.Reason, "", f.Fix)
		}
		total += len(findings)
		return nil
	}
	for _, g := range b.Manifest.Graphs {
		if err := look(g.File, b.Path(g.File)); err != nil {
			return exit.Refused(err)
		}
		if g.Precision == string(manifest.BF16) {
			// Without a kernel for a node ONNX Runtime makes no session, and so saves no optimised graph, at any level.
			fmt.Fprintf(out, "%s as ONNX Runtime optimises it: not looked at, as its CPU provider, which would do it, has no bf16 kernels\n", g.File)
			continue
		}
		optimized := filepath.Join(dir, g.File)
		if err := ort.Optimize(b.Path(g.File), optimized); err != nil {
			return exit.Refused(err)
		}
		if err := look(g.File+" as ONNX Runtime optimises it", optimized); err != nil {
			return exit.Refused(err)
		}
	}
	if total > 0 {
		return exit.Refused(hint.Errorf("correct the model and export it again; docs/bundle.md tells what graphs are made of", "%s: %s", spec, report.Count(total, "finding")))
	}
	return nil
}
