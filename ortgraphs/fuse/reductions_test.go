package fuse_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestReductionsOfIntegers: a reduction of all integers is one along a row. One of columns has no kernel, and costs no
// other node its own.
func TestReductionsOfIntegers(t *testing.T) {
	for name, c := range map[string]struct {
		axes []int
		left int
	}{"all": {[]int{0, 1, 2}, 0}, "rows": {[]int{2}, 0}, "columns": {[]int{0, 1}, 1}} {
		for _, op := range []string{"ReduceSum", "ReduceMax", "ReduceMin"} {
			b := newForm()
			e := b.add("Exp", "x")
			reduced := b.add(op, b.add("Cast", b.add("Mul", e, b.number(5)), to(i64)), b.numbers(c.axes...))
			model := b.outputs(e, b.add("Cast", reduced, to(f32)))
			r, g, regions := partition(t, model, shapes.Sizes{})
			m, _ := results(t, model, r, g, regions, batch(r, nil))
			var k kernels
			k.add(t, regions, m)
			if len(k.kernels) == 0 || len(k.left) != c.left {
				t.Errorf("%s of %s: %d kernels; left: %v", op, name, len(k.kernels), k.left)
			}
			for _, region := range regions {
				if _, err := cudac.Generate(region, cudac.Target{}); err != nil && len(region.Nodes) > 1 {
					t.Errorf("%s of %s: %s: %v", op, name, region.Ops(), err)
				}
			}
			k.check(t, &emulation{}, 2e-6)
		}
	}
}

// TestReductionsOfConstants: what is reduced of equal numbers is a number, and not a kernel that reads nothing.
func TestReductionsOfConstants(t *testing.T) {
	b := newForm()
	many := b.add("Expand", b.number(0.25), b.numbers(3, 3000, 4))
	var out []string
	for _, op := range []string{"ReduceSum", "ReduceMax", "ReduceMean"} {
		out = append(out, b.add("Mul", "m", b.add("Squeeze", b.add(op, many, b.numbers(1)), b.numbers(1))))
	}
	model := b.outputs(append(out, b.add("ReduceSum", many, b.numbers(0, 1)))...)
	r, g, regions := partition(t, model, shapes.Sizes{})
	for _, region := range regions {
		for _, n := range region.Nodes {
			if n.Op == "sum" || n.Op == "max" {
				t.Errorf("%s of a constant", n.Op)
			}
		}
	}
	compare(t, model, r, g, regions, batch(r, nil), 1e-6, 1e-6)
}
