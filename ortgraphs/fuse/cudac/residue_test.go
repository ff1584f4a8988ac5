package cudac_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
)

// TestResidue: the quotient by multiplication is exact next to all multiples of a divisor that could go wrong, up to
// the largest int.
func TestResidue(t *testing.T) {
	divisors := []int{
		1, 2, 3, 5, 7, 10, 16, 641, 4633, 46337, 46341, 65535, 65536, 65537, 1<<30 - 1, 1 << 30, 1<<30 + 1,
		math.MaxInt32 - 1, math.MaxInt32,
	}
	var body strings.Builder
	for i, d := range divisors {
		fmt.Fprintf(&body, "y[%d] = residue_of<%d>(x[%d]);\n", i, d, i)
	}
	source := fmt.Sprintf("extern \"C\" __global__ void f(const int *__restrict__ x, int *__restrict__ y) {\n%s}\n",
		&body)
	program := cudactest.Compile(t, cudac.Prelude,
		[]cudactest.Source{{Text: source, Functions: map[string]int{"f": 2}}})
	f := program.Function(0, "f")
	x, y := make([]int32, len(divisors)), make([]int32, len(divisors))
	pointers := []uintptr{cudactest.Address(t, x), cudactest.Address(t, y)}
	for round := range 2000 {
		for i, d := range divisors {
			most := math.MaxInt32 / d
			multiple := d * (most - min(round/3, most)) // from the largest one down
			if round%2 == 1 {
				multiple = d * (round * 7919 % (most + 1))
			}
			x[i] = int32(min(max(multiple+round%3-1, 0), math.MaxInt32))
		}
		if err := cudactest.Launch(program.Launch, f, 0, [2]int{1, 1}, 1, 0, pointers); err != nil {
			t.Fatal(err)
		}
		for i, d := range divisors {
			if int(y[i]) != int(x[i])%d {
				t.Fatalf("%d by %d: %d", x[i], d, y[i])
			}
		}
	}
}
