package ortgraphs_test

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Two parameters that the optimizer decays, one that it does not, one that is frozen: each begins at a
// multiple of 64 elements.
func ExampleLayoutArena() {
	a := ortgraphs.LayoutArena([]manifest.Parameter{
		{Name: "in.weight", Shape: []int{8, 8}, Decay: true},
		{Name: "out.weight", Shape: []int{8, 9}, Decay: true},
		{Name: "out.bias", Shape: []int{9}},
		{Name: "positions", Shape: []int{64}, Frozen: true},
	})
	fmt.Println(a.Offsets)
	fmt.Println("decayed", a.Decayed, "not decayed", a.NotDecayed, "frozen", a.Frozen)
	// Output:
	// [0 64 192 256]
	// decayed {0 192} not decayed {192 256} frozen {256 320}
}
