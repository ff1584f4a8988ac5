package report

import (
	"strings"
	"testing"
)

// TestOtherForms: only a resumed run whose training graph has another form than before is warned of it.
func TestOtherForms(t *testing.T) {
	fused, plain := Graph{Fused: &Fused{Kernels: 9}}, Graph{Unfused: "--fuse off"}
	of := func(player string, g Graph) Graph {
		g.Player = player
		return g
	}
	evaluation := func(g Graph) Graph {
		g.Use = Evaluating
		return g
	}
	for _, c := range []struct {
		before []Graph // nil: there is no report
		now    []Graph
		want   []string
	}{
		{nil, []Graph{fused}, nil},
		{[]Graph{fused}, []Graph{fused}, nil},
		{[]Graph{plain}, []Graph{plain}, nil},
		{[]Graph{{}}, []Graph{fused}, nil}, // on the CPU
		{
			[]Graph{fused}, []Graph{plain},
			[]string{"had the fused graph so far, and continues with the graph as exported"},
		},
		{
			[]Graph{plain}, []Graph{fused},
			[]string{"had the graph as exported so far, and continues with the fused graph"},
		},
		{
			[]Graph{of("a", plain), of("b", fused), {}}, []Graph{of("a", fused), of("b", plain), {}},
			[]string{"had the graph of a as exported so far", "had the fused graph of b so far"},
		},
		{[]Graph{fused, evaluation(plain)}, []Graph{fused, evaluation(plain)}, nil},
		{[]Graph{{}, evaluation(Graph{})}, []Graph{fused, evaluation(fused)}, nil}, // on the CPU
		{
			[]Graph{fused, evaluation(Graph{})}, []Graph{fused, evaluation(fused)},
			[]string{"had the graph of evaluation as exported so far"},
		},
		{
			[]Graph{fused, evaluation(fused)}, []Graph{fused, evaluation(Graph{})},
			[]string{"had the fused graph of evaluation so far"},
		},
	} {
		dir := t.TempDir()
		if c.before != nil {
			if err := (&Report{Graphs: c.before}).Write(dir); err != nil {
				t.Fatal(err)
			}
		}
		got := OtherForms(dir, c.now)
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
