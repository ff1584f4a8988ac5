package ort_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// The cost of a run without the computation: four additions.
func BenchmarkRun(b *testing.B) {
	x := floats(b, []int{4})
	bound := ready(b, graph(b, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": x})
	b.ReportAllocs()
	for b.Loop() {
		if err := bound.Run(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBind(b *testing.B) {
	x := floats(b, []int{4})
	bound := binding(b, graph(b, "add_one"))
	b.ReportAllocs()
	for b.Loop() {
		if err := bound.BindInput("x", x); err != nil {
			b.Fatal(err)
		}
	}
}
