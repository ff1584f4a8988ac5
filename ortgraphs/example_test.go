package ortgraphs_test

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Of four parameters the run freezes one: gradients and moments have no place for it. Each parameter begins at a
// multiple of 256 bytes.
func ExampleNewArena() {
	parameters := []manifest.Parameter{
		{Name: "in.weight", Shape: []int{8, 8}, Decay: true},
		{Name: "out.weight", Shape: []int{8, 9}, Decay: true},
		{Name: "out.bias", Shape: []int{9}},
		{Name: "positions", Shape: []int{64}},
	}
	a := ortgraphs.NewArena(parameters, ortgraphs.Policy{Frozen: map[string]bool{"in.weight": true}})
	for i, p := range parameters {
		weight, _ := a.Parameter(ortgraphs.Weights, i)
		gradient, ok := a.Parameter(ortgraphs.Gradients, i)
		fmt.Println(p.Name, weight.Offset, gradient.Offset, ok)
	}
	fmt.Println(a.Bytes(ortgraphs.Weights), a.Bytes(ortgraphs.Gradients),
		a.Memory(manifest.Optimizer{Name: "adamw"}, false, false).Moments)
	// Output:
	// in.weight 1024 0 false
	// out.weight 0 0 true
	// out.bias 512 512 true
	// positions 768 768 true
	// 1280 1024 2048
}
