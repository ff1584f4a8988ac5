package host

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/report"
)

// TestOtherForms: only a resumed run whose training graph has another form than before is warned of it.
func TestOtherForms(t *testing.T) {
	fused, plain := report.Graph{Fused: &report.Fused{Kernels: 9}}, report.Graph{Unfused: "--fuse off"}
	of := func(player string, g report.Graph) report.Graph {
		g.Player = player
		return g
	}
	for _, c := range []struct {
		before []report.Graph // nil: there is no report
		now    []report.Graph
		want   []string
	}{
		{nil, []report.Graph{fused}, nil},
		{[]report.Graph{fused}, []report.Graph{fused}, nil},
		{[]report.Graph{plain}, []report.Graph{plain}, nil},
		{[]report.Graph{{}}, []report.Graph{fused}, nil}, // on the CPU
		{[]report.Graph{fused}, []report.Graph{plain}, []string{"with the fused graph so far, and continues with the graph as exported"}},
		{[]report.Graph{plain}, []report.Graph{fused}, []string{"with the graph as exported so far, and continues with the fused graph"}},
		{[]report.Graph{of("a", plain), of("b", fused), {}}, []report.Graph{of("a", fused), of("b", plain), {}}, []string{"with the graph of a as exported so far", "with the fused graph of b so far"}},
	} {
		dir := t.TempDir()
		if c.before != nil {
			if err := (&report.Report{Graphs: c.before}).Write(filepath.Join(dir, report.ReportFile)); err != nil {
				t.Fatal(err)
			}
		}
		got := otherForms(dir, c.now)
		if len(got) != len(c.want) {
			t.Errorf("%+v, %+v: %q", c.before, c.now, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q, want %q", got[i], want)
			}
		}
	}
}
