package ort_test

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Outputs are allocated with the shape of each run, and become inputs of the next one.
func TestOutputsFeedTheNextRun(t *testing.T) {
	s := graph(t, "add_one")
	b := binding(t, s)
	for _, n := range []int{3, 5, 2} {
		x := floats(t, []int{n})
		for round := range 4 {
			b.BindInput("x", x)
			b.BindOutputAt("y", ort.Host)
			if err := b.Run(nil); err != nil {
				t.Fatal(err)
			}
			found, err := b.Outputs()
			if err != nil {
				t.Fatal(err)
			}
			x.Close() // the binding holds it
			x = found["y"]
			y := ort.View[float32](x.Bytes())
			if len(found) != 1 || len(y) != n || y[n-1] != float32(round+1) || x.Shape()[0] != n || x.DType() != "f32" {
				t.Errorf("%d elements, round %d: %v of shape %s%v", n, round, y, x.DType(), x.Shape())
			}
		}
		x.Close()
	}
}

// An output in the caller's memory is not among them.
func TestOutputsInMemoryOfTheCaller(t *testing.T) {
	x, y := floats(t, []int{2}), floats(t, []int{2})
	b := ready(t, graph(t, "add_one"), map[string]*ort.Tensor{"x": x}, map[string]*ort.Tensor{"y": y})
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	found, err := b.Outputs()
	if err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	b.BindOutputAt("y", ort.Host)
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	if found, err = b.Outputs(); err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	found["y"].Close()
}

func TestBindOutputAtOfNoOutput(t *testing.T) {
	b := binding(t, graph(t, "add_one"))
	if err := b.BindOutputAt("z", ort.Host); !errors.Is(err, ort.ErrBinding) {
		t.Errorf("error %v", err)
	}
	if _, err := b.Outputs(); !errors.Is(err, ort.ErrBinding) {
		t.Errorf("error %v", err)
	}
}
