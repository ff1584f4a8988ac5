package cudac

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
)

// TestNumberBlocks: each part of each matrix has a block. Part 0 of all matrices of a group comes before part 1, or the
// last part before the one before it, and a group before the next.
func TestNumberBlocks(t *testing.T) {
	type grid struct {
		batch, parts, group int
		order
	}
	grids := []grid{
		{12, 3, 4, firstFirst}, {10, 3, 4, firstFirst}, {5, 2, 8, firstFirst}, {7, 1, 3, firstFirst},
		{3, 4, 1, firstFirst}, {10, 3, 4, lastFirst},
	}
	var sources []cudactest.Source
	for _, g := range grids {
		text := fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(1) f(int *__restrict__ to) {\n%s\n"+
			"to[blockIdx.x] = batch * %d + part;\n}\n",
			strings.Join(numberBlocks(g.batch, g.parts, g.group, g.order), "\n"), g.parts)
		sources = append(sources, cudactest.Source{Text: text, Functions: map[string]int{"f": 1}})
	}
	program := cudactest.Compile(t, "", sources)
	for i, g := range grids {
		var want []int32
		for first := 0; first < g.batch; first += g.group {
			for part := range g.parts {
				if g.order == lastFirst {
					part = g.parts - 1 - part
				}
				for m := first; m < min(first+g.group, g.batch); m++ {
					want = append(want, int32(m*g.parts+part))
				}
			}
		}
		got := make([]int32, len(want))
		if err := cudactest.Launch(program.Launch, program.Function(i, "f"), 0, [2]int{len(want), 1}, 1, 0, []uintptr{
			cudactest.Address(t, got),
		}); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: %v, want %v", g, got, want)
		}
	}
}
