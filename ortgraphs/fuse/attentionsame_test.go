package fuse_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestAttentionSame: with its attention in regions of their own, a graph computes the same.
func TestAttentionSame(t *testing.T) {
	a := attending{
		batch: 3, heads: 2, queries: 9, keys: 11, head: 16, lengths: true, dropout: true, transposedKeys: true,
	}
	model := a.model()
	r, g, regions := partition(t, model, shapes.Sizes{})
	got, err := interpret(g, regions, given(g))
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := fuse.Lower(r)
	if err != nil {
		t.Fatal(err)
	}
	want, err := interpret(lowered, nil, given(lowered))
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range g.Outputs {
		if d := apart(got[o.Tensor], want[lowered.Outputs[i].Tensor]); d != 0 {
			t.Errorf("%s: %g away", o.Name, d)
		}
	}
}

// TestNoAttention: a graph that needs its scores elsewhere, or whose matrices the kernels do not take, stays as it is.
func TestNoAttention(t *testing.T) {
	base := attending{batch: 2, heads: 2, queries: 9, keys: 11, head: 16}
	for name, change := range map[string]func(a *attending){
		"weights are an output": func(a *attending) { a.output("weights.short") },
		"scores are read elsewhere": func(a *attending) {
			a.output(a.node("ReduceMax", "most", nil, "products", a.ints(0)))
		},
		"scores have a gradient": func(a *attending) {
			a.output(a.node("ReduceSum", "db", nil, "ds", a.ints(0)))
		},
		"weights are multiplied further": func(a *attending) {
			a.output(a.node("MatMul", "more", nil, "weights.short", "v.heads"))
		},
	} {
		a := base
		model := a.model()
		change(&a)
		model.Graph = a.graph
		_, _, regions := partition(t, model, shapes.Sizes{})
		if forward, backward := regionsOf(regions); forward+backward > 0 {
			t.Errorf("%s: %d regions of attention, %d of its gradient", name, forward, backward)
		}
	}
	base.head = 8
	_, _, regions := partition(t, base.model(), shapes.Sizes{})
	if forward, backward := regionsOf(regions); forward+backward > 0 {
		t.Error("matrices of 8 columns")
	}
}
