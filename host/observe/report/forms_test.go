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
			[]string{"with the fused graph so far, and continues with the graph as exported"},
		},
		{
			[]Graph{plain}, []Graph{fused},
			[]string{"with the graph as exported so far, and continues with the fused graph"},
		},
		{
			[]Graph{of("a", plain), of("b", fused), {}}, []Graph{of("a", fused), of("b", plain), {}},
			[]string{"with the graph of a as exported so far", "with the fused graph of b so far"},
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
